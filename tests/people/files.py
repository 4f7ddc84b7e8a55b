"""Files such as analysts keep on their disks, with planted groups and known answers."""

import gzip
import json
import sqlite3
import struct
import zipfile
import zlib
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

Rng = np.random.Generator
AGREE = ["Strongly disagree", "Disagree", "Neither agree nor disagree", "Agree", "Strongly agree"]
ZUSTIMMUNG = [f"stimme {how} zu" for how in ("überhaupt nicht", "eher nicht", "eher", "voll")]
ZUSTIMMUNG.insert(2, "teils/teils")
FIRST = ["Aoife", "Ben", "Chloe", "Dev", "Elif", "Femi", "Grace", "Hugo", "Jamal", "Mei", "Noor"]
LAST = ["Adams", "Brown", "Clarke", "Evans", "Foster", "Green", "Iqbal", "Jones", "Khan", "Moore"]
REMARKS = [
    "All fine, thank you.",
    "Nothing to add",
    "My manager listens, which helps a lot.",
    'The "new" rota is confusing',
    "Fix the heating.\nIt has been cold since May.",
    "n/a",
]


@dataclass(frozen=True)
class Planted:
    """The right answer to a file: which rows belong together."""

    name: str
    groups: list[int]  # of each row, in order; -1 for one that belongs to none, such as a total
    k: int  # 0 where there is nothing to cluster


def plant(seed: int, sizes: Sequence[int]) -> tuple[Rng, np.ndarray, int]:
    """Give a seeded generator, shuffled groups of the sizes asked for, and the number of rows."""
    rng = np.random.default_rng(seed)
    return rng, rng.permutation(np.repeat(np.arange(len(sizes)), sizes)), sum(sizes)


def around(rng: Rng, groups: np.ndarray, centres: Sequence[float], spread: float) -> np.ndarray:
    """Draw numbers scattered about the centre of each row's group."""
    return rng.normal(np.asarray(centres, float)[groups], spread)


def amounts(rng: Rng, groups: np.ndarray, medians: Sequence[float], spread: float) -> np.ndarray:
    """Draw skewed positive amounts about the median of each row's group."""
    return np.exp(around(rng, groups, np.log(medians), spread))


def pick(rng: Rng, groups: np.ndarray, words: Sequence, shares: Sequence[Sequence[float]]) -> list:
    """Draw one word for each row, with the shares of the row's group."""
    return [words[rng.choice(len(words), p=shares[g])] for g in groups]


def mostly(rng: Rng, groups: np.ndarray, words: Sequence[str]) -> list:
    """Draw one word for each row: mostly that of its group."""
    return pick(rng, groups, words, 0.96 * np.eye(len(words)) + 0.04 / len(words))


def rating(rng: Rng, groups: np.ndarray, centres: Sequence[float]) -> np.ndarray:
    """Draw whole answers from 1 to 5 about the centre of each row's group."""
    return np.clip(np.rint(around(rng, groups, centres, 0.85)), 1, 5).astype(int)


def lose(rng: Rng, values: Sequence, share: float, mark: object = "") -> list:
    """Replace a share of the values, at random, by a mark for missing."""
    gone = rng.random(len(values)) < share
    return [mark if lost else value for value, lost in zip(values, gone, strict=True)]


def people(rng: Rng, count: int) -> list[str]:
    """Draw full names."""
    return [f"{rng.choice(FIRST)} {rng.choice(LAST)}" for _ in range(count)]


def dates(days: np.ndarray, form: str) -> list[str]:
    """Write days since the start of 2015 as dates in the form given."""
    return list((pd.Timestamp("2015-01-01") + pd.to_timedelta(days, unit="D")).strftime(form))


def comma(value: float, places: int = 2) -> str:
    """Write a number with a decimal comma and dots between thousands."""
    return f"{value:,.{places}f}".translate(str.maketrans(",.", ".,"))


def bracketed(value: float) -> str:
    """Write an amount of money with a negative one in parentheses."""
    return f"({-value:,.2f})" if value < 0 else f"{value:,.2f}"


def table(columns: dict[str, Sequence], delimiter: str = ",") -> str:
    """Write columns as delimited text with a header."""
    return pd.DataFrame(columns).to_csv(sep=delimiter, index=False, lineterminator="\r\n")


def hr_staff(path: Path) -> list[int]:
    """Staff list in Excel: title and empty row on top, categories beside pay, a second sheet."""
    rng, g, n = plant(101, [210, 170, 140, 100])
    departments, levels = "Warehouse Sales Engineering Office", "Junior Mid Senior Director"
    overtime = abs(around(rng, g, [19, 4, 11, 2], 2.2)).round(1)
    columns: dict[str, Sequence] = {
        "Staff No.": [f"HR{100000 + i}" for i in rng.permutation(n)],
        "Name": people(rng, n),
        "Department": mostly(rng, g, departments.split()),
        "Gender": pick(rng, g, ["F", "M"], [[0.2, 0.8], [0.8, 0.2], [0.15, 0.85], [0.7, 0.3]]),
        "Level": mostly(rng, g, levels.split()),
        "Annual salary": np.rint(around(rng, g, [23500, 36000, 55000, 84000], 3400) / 50) * 50,
        "Years of service": np.abs(around(rng, g, [2.5, 7, 5, 15], 1.6)).round(1),
        "Overtime (h)": lose(rng, overtime, 0.03, None),
    }
    with pd.ExcelWriter(path, engine="openpyxl") as book:
        pd.DataFrame(columns).to_excel(book, sheet_name="Staff", startrow=2, index=False)
        book.sheets["Staff"]["A1"] = "Staff list as at 31 March 2024 (confidential)"
        book.book.create_sheet("Notes").append(["Salaries are before tax. Ask hr@example.org"])
    return g.tolist()


def staff_survey(path: Path) -> list[int]:
    """Survey in English words: stray capitals and spaces, blanks, comments of several lines."""
    rng, g, n = plant(102, [260, 220, 180])
    sent = dates(np.sort(rng.uniform(3350, 3364, n)), "%Y/%m/%d %I:%M:%S %p GMT")
    columns: dict[str, Sequence] = {"Timestamp": sent}
    asked = {
        "I am proud to work here": [4.5, 3.4, 1.7],
        "My pay is fair": [3.9, 3.6, 1.6],
        "My manager, on the whole, listens to me": [4.6, 1.8, 2.2],
        "My workload is reasonable": [4.2, 1.7, 3.9],
        "I see a future here": [4.4, 3.9, 1.5],
        "My tools are good": [4.1, 2.0, 4.0],
        "I would recommend us to a friend": [4.6, 3.0, 1.6],
        "Meetings are a good use of my time": [3.9, 1.6, 3.4],
    }
    for question, centres in asked.items():
        words = [AGREE[a - 1] for a in rating(rng, g, centres)]
        sloppy = [w.lower() + " " if rng.random() < 0.03 else w for w in words]
        columns[question] = lose(rng, lose(rng, sloppy, 0.02), 0.01, "Don't know")
    columns["Any other comments?"] = lose(rng, rng.choice(REMARKS, n), 0.6)
    path.write_text(table(columns), encoding="utf-8", newline="")
    return g.tolist()


def kundenumfrage(path: Path) -> list[int]:
    """German survey: semicolons, decimal commas, cp1252, answers in words, 'k. A.' as missing."""
    rng, g, n = plant(103, [300, 250, 200, 150])
    columns: dict[str, Sequence] = {
        "Kunden-Nr.": [f"K-{70000 + i}" for i in rng.permutation(n)],
        "Alter": np.clip(np.rint(around(rng, g, [29, 46, 68, 41], 4.5)), 18, 92).astype(int),
        "Monatsumsatz (€)": [comma(v) for v in amounts(rng, g, [180, 620, 240, 2100], 0.25)],
        "Wartezeit (Min.)": [comma(v, 1) for v in np.abs(around(rng, g, [4, 11, 19, 5], 1.8))],
    }
    asked = {
        "Die Beratung ist verständlich": [4.4, 2.0, 3.9, 4.5],
        "Die Preise sind günstig": [1.6, 2.2, 4.3, 4.2],
        "Ich nutze die App täglich": [4.7, 3.8, 1.3, 1.8],
        "Ich würde Sie weiterempfehlen": [4.2, 1.6, 4.1, 4.6],
        "Das Geschäft ist gut erreichbar": [2.0, 3.9, 4.4, 1.7],
    }
    for question, centres in asked.items():
        words = [ZUSTIMMUNG[a - 1] for a in rating(rng, g, centres)]
        columns[question] = lose(rng, words, 0.025, "k. A.")
    path.write_bytes(table(columns, ";").encode("cp1252"))
    return g.tolist()


def wellbeing_codes(path: Path) -> list[int]:
    """Survey from SPSS: answers 1 to 5 and ages, with 99, 999 and -9 as codes for missing."""
    rng, g, n = plant(104, [500, 420, 280])
    columns: dict[str, Sequence] = {"RespID": 200001 + np.arange(n)}
    age = np.clip(np.rint(around(rng, g, [27, 48, 71], 5)), 18, 95).astype(int)
    columns["Age"] = lose(rng, lose(rng, age, 0.03, 999), 0.01, -9)
    asked = {"sleep": [2, 3.8, 4.3], "energy": [4.4, 2.0, 3.2], "worry": [3.8, 4.3, 1.7]}
    asked |= {"lonely": [2.1, 2.0, 4.2], "exercise": [4.4, 1.8, 3.6], "purpose": [2.0, 4.2, 4.1]}
    asked |= {"diet": [1.8, 3.9, 4.3], "pain": [1.3, 2.2, 4.1]}
    for number, (topic, centres) in enumerate(asked.items(), 1):
        answers = lose(rng, rating(rng, g, centres), 0.03, 99)
        columns[f"Q{number}_{topic}"] = lose(rng, answers, 0.03, -9)
    path.write_text(table(columns), newline="")
    return g.tolist()


def shop_customers(path: Path) -> list[int]:
    """Online shop: ids, emails, plans, '£1,234.50', '12.5%', dates, a constant and a BOM."""
    rng, g, n = plant(105, [600, 450, 300, 150])
    spent = [f"£{v:,.2f}" for v in amounts(rng, g, [60, 480, 1900, 14500], 0.3)]
    columns = {
        "customer_id": rng.permutation(np.arange(n)) + 5_000_000,
        "email": [f"{w.replace(' ', '.')}{i}@example.com" for i, w in enumerate(people(rng, n))],
        "plan": mostly(rng, np.array([0, 0, 1, 2])[g], ["basic", "pro", "enterprise"]),
        "signed_up": dates(around(rng, g, [3250, 1900, 2700, 700], 130), "%Y-%m-%d"),
        "revenue": lose(rng, spent, 0.02),
        "orders": rng.poisson(np.array([3, 14, 27, 52])[g]),
        "discount_used": [f"{v:.1f}%" for v in np.abs(around(rng, g, [32, 8, 17, 3], 2.5))],
        "currency": ["GBP"] * n,
    }
    path.write_text(table(columns), encoding="utf-8-sig", newline="")
    return g.tolist()


def coffee_shops(path: Path) -> list[int]:
    """Coffee shops of five cities: names, coordinates (six lack them) and phone numbers."""
    rng, g, n = plant(106, [130, 90, 70, 60, 50])
    lost = rng.choice(n, 6, replace=False)
    lat = np.array([f"{v:.5f}" for v in around(rng, g, [51.51, 53.48, 55.95, 51.46, 52.63], 0.07)])
    lon = np.array([f"{v:.5f}" for v in around(rng, g, [-0.13, -2.24, -3.19, -3.17, 1.29], 0.1)])
    lat[lost], lon[lost], g[lost] = "", "", -1
    streets = ["High St", "Mill Lane", "Station Rd", "Quay", "Market Sq", "Church Row"]
    columns = {
        "Shop": [f"{rng.choice(LAST)}'s Coffee, {rng.choice(streets)}" for _ in range(n)],
        "Latitude": lat,
        "Longitude": lon,
        "Phone": [f"0{rng.integers(10**9, 2 * 10**9)}" for _ in range(n)],
    }
    path.write_text(table(columns), encoding="utf-8", newline="")
    return g.tolist()


def products_owned(path: Path) -> list[int]:
    """Products that bank members own: some columns hold 0 and 1, others Yes and No."""
    rng, g, n = plant(107, [320, 260, 220])
    products = "current savings isa credit_card overdraft loan mortgage home_cover life_cover "
    products += "car_cover travel pension shares forex"
    low, high = [0.06] * 5, [0.94] * 5
    shares = [high + low + low[:4], low + high + low[:4], high[:2] + low + low[:3] + high[:4]]
    columns: dict[str, Sequence] = {"member": [f"M{10_000 + i}" for i in rng.permutation(n)]}
    for number, product in enumerate(products.split()):
        owned = rng.random(n) < np.array(shares)[g, number]
        columns[product] = list(np.where(owned, "Yes", "No")) if number % 3 else owned.astype(int)
    path.write_text(table(columns), newline="")
    return g.tolist()


def app_events(path: Path) -> list[int]:
    """Events per user as JSON lines: skewed counts, with keys left out where the count is 0."""
    rng, g, n = plant(108, [700, 500, 400, 200])
    keen = rng.lognormal(0, 0.2, n)
    rates = {"login": [6, 25, 28, 60], "search": [18, 6, 50, 45], "upload": [0.6, 20, 2, 36]}
    rates |= {"share": [1, 18, 0.6, 25], "comment": [0.6, 2, 18, 22], "purchase": [0.4, 1, 9, 14]}
    counts = {e: rng.poisson(np.array(r)[g] * keen) for e, r in rates.items()}
    with path.open("w", encoding="utf-8", newline="\n") as out:
        for i in range(n):
            seen = {event: int(count[i]) for event, count in counts.items() if count[i]}
            record = {"user": f"u{i * 7919 % 99991}", **seen, "os": ["ios", "android"][i % 2]}
            out.write(json.dumps(record) + "\n")
    return g.tolist()


def bank_export(path: Path) -> list[int]:
    """Zipped bank export: lines above the header, (1,234.50), day-month dates, a totals row."""
    rng, g, n = plant(109, [190, 160, 110])
    balance = around(rng, g, [2100, -1400, 5900], 800)
    inflow = amounts(rng, g, [2400, 1900, 5200], 0.2)
    fees = -np.abs(around(rng, g, [6, 48, 25], 7))
    opened = dates(around(rng, g, [2600, 2300, 600], 150), "%d-%m-%Y")
    columns = {
        "Account": [f"20-{a}-{b}" for a, b in rng.integers(10**5, 10**6, (n, 2))] + ["Total"],
        "Opened": [*opened, ""],
        "Average balance": [bracketed(v) for v in [*balance, balance.sum()]],
        "Monthly inflow": [bracketed(v) for v in [*inflow, inflow.sum()]],
        "Fees": [bracketed(v) for v in [*fees, fees.sum()]],
        "Overdraft used": [f"{v:.0f}%" for v in np.abs(around(rng, g, [8, 71, 1], 11))] + [""],
    }
    text = "Harbour Bank plc - account summary\r\nExported 03-11-2024 09:14\r\n\r\n"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as out:
        out.writestr(zipfile.ZipInfo("summary/accounts.csv"), text + table(columns))
        out.writestr(zipfile.ZipInfo("__MACOSX/summary/._accounts.csv"), b"\0\5\x16\7\0\2\0\0Mac")
    return [*g.tolist(), -1]


def leaf_traits(path: Path) -> list[int]:
    """Leaves from R's write.table: spaces between fields, header one name short, NA."""
    rng, g, n = plant(110, [90, 80, 70])
    traits = {
        "Leaf.Length": ([4.2, 7.9, 6.1], 0.55),
        "Leaf.Width": ([2.9, 2.2, 5.0], 0.35),
        "Petiole": ([0.8, 2.1, 1.3], 0.2),
        "Chlorophyll": ([31, 44, 52], 3.0),
        "Mass.mg": ([120, 310, 280], 28),
    }
    columns = {
        trait: lose(rng, [f"{v:.4g}" for v in around(rng, g, *about)], 0.02, "NA")
        for trait, about in traits.items()
    }
    columns["Plot"] = [f'"{p}"' for p in rng.choice(["North", "South"], n)]
    header = " ".join(f'"{name}"' for name in columns)
    names = [f'"{i + 1}"' for i in range(n)]
    rows = [" ".join(row) for row in zip(names, *columns.values(), strict=True)]
    path.write_text("\n".join([header, *rows]) + "\n", newline="")
    return g.tolist()


def colis(path: Path) -> list[int]:
    """French parcels, gzipped TSV: accents, decimal commas, units (g and kg in one column)."""
    rng, g, n = plant(111, [420, 330, 250])
    weight = amounts(rng, g, [0.6, 9, 20], 0.16)
    columns = {
        "Numéro de suivi": [f"FR{v}" for v in rng.integers(10**10, 10**11, n)],
        "Expédié le": dates(rng.integers(3300, 3500, n), "%d/%m/%Y"),
        "Poids": [f"{w * 1000:.0f} g" if w < 1 else f"{comma(w)} kg" for w in weight],
        "Côté le plus long": [f"{v:.0f} cm" for v in around(rng, g, [28, 68, 112], 6)],
        "Délai": [f"{comma(v, 1)} j" for v in np.abs(around(rng, g, [1.6, 3.7, 6.2], 0.4))],
        "Coût d'expédition": [f"{comma(v)} €" for v in around(rng, g, [5.4, 17, 31], 1.1)],
        "Catégorie": mostly(rng, g, ["lettre suivie", "colis", "volumineux"]),
        "Observations": lose(rng, rng.choice(["RAS", "voisin absent", "à déposer"], n), 0.7),
    }
    path.write_bytes(gzip.compress(table(columns, "\t").encode("utf-8"), mtime=0))
    return g.tolist()


def subscribers(path: Path) -> list[int]:
    """Phone subscribers in Parquet: booleans, categories, nullable integers, times, a constant."""
    rng, g, n = plant(112, [900, 700, 500, 300])
    contract = mostly(rng, np.array([0, 1, 2, 0])[g], ["monthly", "yearly", "two years"])
    data = np.array(lose(rng, around(rng, g, [6, 22, 41, 58], 3.2), 0.03, np.nan), float)
    paperless = rng.random(n) < np.array([0.05, 0.06, 0.94, 0.95])[g]
    lines = lose(rng, np.rint(np.clip(around(rng, g, [1, 2, 4, 1], 0.35), 1, 6)), 0.02, None)
    pd.DataFrame(
        {
            "subscriber_id": [f"{v:016x}" for v in rng.integers(0, 2**62, n)],
            "contract": pd.Categorical(contract),
            "autopay": rng.random(n) < np.array([0.06, 0.94, 0.95, 0.93])[g],
            "paperless": pd.array(lose(rng, paperless, 0.02, None), dtype="boolean"),
            "lines": pd.array(lines, dtype="Int64"),
            "tenure_months": np.rint(np.abs(around(rng, g, [7, 38, 66, 14], 5))).astype("int16"),
            "data_gb": data.astype("float32"),
            "calls_to_support": rng.poisson(np.array([7, 1.2, 1.5, 1])[g]).astype("uint8"),
            "country": pd.Categorical(["IE"] * n),
            "seen": pd.to_datetime(rng.integers(1_700_000_000, 1_730_000_000, n), unit="s"),
        }
    ).to_parquet(path, index=False)
    return g.tolist()


def expression(path: Path) -> list[int]:
    """Gene expression: 600 columns, more than samples, each with a little of the groups."""
    rng, g, n = plant(113, [70, 60, 50, 40])
    programmes = rng.permuted(np.tile([-1.0, -0.3, 0.4, 1.1], (15, 1)), axis=1).T
    level = np.repeat(programmes[g], 40, axis=1) * rng.uniform(0.7, 1.3, 600)
    values = rng.uniform(4, 11, 600) + level + rng.normal(0, 1, level.shape)
    frame = pd.DataFrame(values.round(3)).rename(columns=lambda i: f"ENSG{117000 + 13 * i:011d}")
    frame.insert(0, "sample", [f"PT{i:03d}-RNA" for i in rng.permutation(n) + 1])
    frame.to_csv(path, index=False)
    return g.tolist()


def employees(path: Path) -> list[int]:
    """Two numbers beside categories, of which one alone tells two groups apart."""
    rng, g, n = plant(1, [220, 180, 150, 90])
    columns: dict[str, Sequence] = {
        "EmployeeNumber": rng.permutation(n) + 10_001,
        "Department": mostly(rng, g, ["Sales", "Research", "Operations", "Finance"]),
        "Gender": rng.choice(["Female", "Male"], n),
        "Level": mostly(rng, np.array([0, 1, 0, 2])[g], ["Junior", "Senior", "Lead"]),
        "Age": np.rint(around(rng, g, [29, 44, 34, 52], 3)).astype(int),
        "MonthlyIncome": np.rint(around(rng, g, [3100, 6800, 2600, 9900], 450)).astype(int),
    }
    path.write_text(table(columns), newline="")
    return g.tolist()


def teile(path: Path) -> list[int]:
    """One CSV in a zip, in cp1252: umlauts, semicolons and decimal commas."""
    rng, g, _ = plant(5, [300, 200, 100])
    sides = {"länge": [12, 20, 16], "breite": [6, 5, 12], "höhe": [3, 9, 4]}
    text = table({name: [*map(comma, around(rng, g, of, 1.1))] for name, of in sides.items()}, ";")
    with zipfile.ZipFile(path, "w") as out:
        out.writestr("export/teile.csv", text.encode("cp1252"))
    return g.tolist()


def visits(path: Path) -> list[int]:
    """Gzipped UTF-16: one column spreads fifty times as far as those that hold the groups."""
    rng, g, n = plant(9, [200] * 5)
    columns: dict[str, Sequence] = {
        "Revenue": np.round(rng.normal(500, 60, n), 2),
        "Visits": np.rint(around(rng, g, [4, 14, 24, 9, 19], 1.2)).astype(int),
        "Minutes": np.round(around(rng, g, [11, 5, 16, 21, 27], 1.3), 1),
        "Score": np.round(around(rng, g, [9, 3, 6, 1, 8], 0.6), 1),
    }
    path.write_bytes(gzip.compress(table(columns, "\t").encode("utf-16"), mtime=0))
    return g.tolist()


def konten(path: Path) -> list[int]:
    """Amounts in euros as Germans write them, negative ones too, and a line of totals."""
    rng, g, n = plant(12, [140, 120, 100])
    amounts = {
        "Umsatz": around(rng, g, [12_000, 48_000, 90_000], 3_000),
        "Ergebnis": around(rng, g, [-2_500, 6_000, 1_500], 700),
        "Personal": around(rng, g, [-4_000, -21_000, -60_000], 1_500),
    }
    columns: dict[str, Sequence] = {"Kunde": [*(f"Kunde {i} GmbH" for i in range(n)), "Summe"]}
    for name, values in amounts.items():
        columns[name] = [f"{comma(value)}\u00a0€" for value in [*values, values.sum()]]
    path.write_bytes(table(columns, ";").encode("cp1252"))
    return [*g.tolist(), -1]


def accounts(path: Path) -> list[int]:
    """The one table of an SQLite database."""
    rng, g, n = plant(13, [150, 150, 150])
    columns = {
        "plan": mostly(rng, g, ["free", "team", "business"]),
        "seats": np.rint(around(rng, g, [2, 9, 31], 1.5)),
        "hours": around(rng, g, [0.5, 3.1, 1.6], 0.3),
    }
    path.unlink(missing_ok=True)
    with closing(sqlite3.connect(path)) as opened:
        pd.DataFrame(columns, index=np.arange(n) + 1).to_sql("accounts", opened, index_label="id")
    return g.tolist()


def helpdesk_notes(path: Path) -> list[int]:
    """Helpdesk tickets that hold only ticket numbers, names and free text."""
    rng, n = np.random.default_rng(114), 350
    things = ["laptop", "VPN", "printer on floor 2", "badge", "calendar", "shared drive"]
    troubles = ["will not start", "is slow since Monday", "was fine yesterday", "shows error 0x80"]
    columns = {
        "Ticket": rng.permutation(n) + 48_213_000,
        "Raised by": [f"{w} ({i})" for i, w in enumerate(people(rng, n))],
        "Description": [
            f"My {rng.choice(things)} {rng.choice(troubles)}, see note {rng.integers(1000, 9999)}."
            for _ in range(n)
        ],
    }
    path.write_text(table(columns), encoding="utf-8", newline="")
    return [-1] * n


def floor_plan(path: Path) -> list[int]:
    """A PNG picture that somebody renamed to .csv."""
    shade = np.random.default_rng(115).integers(0, 256, (48, 64), dtype=np.uint8)
    rows = b"".join(b"\0" + line.tobytes() for line in shade)
    parts = [
        (b"IHDR", struct.pack(">IIBBBBB", 64, 48, 8, 0, 0, 0, 0)),
        (b"IDAT", zlib.compress(rows)),
        (b"IEND", b""),
    ]
    with path.open("wb") as out:
        out.write(b"\x89PNG\r\n\x1a\n")
        for kind, body in parts:
            check = struct.pack(">I", zlib.crc32(kind + body))
            out.write(struct.pack(">I", len(body)) + kind + body + check)
    return []


NAMES = (
    "hr_staff.xlsx staff_survey.csv kundenumfrage.csv wellbeing_codes.csv shop_customers.csv "
    "coffee_shops.csv products_owned.csv app_events.jsonl bank_export.zip leaf_traits.txt "
    "colis.tsv.gz subscribers.parquet expression.csv employees.csv teile.zip visits.tsv.gz "
    "konten.csv accounts.sqlite helpdesk_notes.csv floor_plan.csv"
)
WRITERS: dict[str, Callable[[Path], list[int]]] = {
    name: globals()[name.partition(".")[0]] for name in NAMES.split()
}


def write_all(folder: Path) -> list[Planted]:
    """Write the files into the folder, made if need be, and say what is planted."""
    folder.mkdir(parents=True, exist_ok=True)
    planted = []
    for name, write in WRITERS.items():
        groups = write(folder / name)
        planted.append(Planted(name, groups, max(groups, default=-1) + 1))
    return planted
