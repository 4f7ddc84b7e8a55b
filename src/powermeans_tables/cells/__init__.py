"""What cells mean: numbers and dates in all forms, words for missing values, answers with an order.

`number_forms` finds how a column writes its numbers, and `column` reads all of its cells so. It
knows no files; what columns mean together is for `preparing`.
"""
