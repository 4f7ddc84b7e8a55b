"""The real data sets that can be read: what they hold, where they come from, who may use them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Source:
    """A real data set.

    Attributes
    ----------
    name : str
        Of the file, without its ending.
    shape : (int, int)
    points_sha256, labels_sha256 : str
        See `powermeans.datasets.real.sha256_of_values`; None where there are no labels.
    publisher : str
        Who made it, and where it is described.
    copy : str
        A public repository of GitHub that has a copy, and the file there.
    licence : str
        As far as it is stated.
    is_single : bool
        Whether its points are float32.
    """

    name: str
    shape: tuple[int, int]
    points_sha256: str
    labels_sha256: str | None
    publisher: str
    copy: str
    licence: str
    is_single: bool = False


_ALL = [
    Source(
        name="a1",
        shape=(3000, 2),
        points_sha256="5c6d0fa322183651b06e6650b6ce03bd859db0fa04ed70268fec749bdf987c75",
        labels_sha256="7c969909eebb4a0c01ecee9c3907d983a3992ad3a5c70022c417366af99c5423",
        publisher=(
            "SIPU / P. Fränti & S. Sieranoja, K-means properties on six clustering benchmark "
            "datasets, Applied Intelligence 48(12) 2018; cs.joensuu.fi/sipu/datasets"
        ),
        copy="gagolews/clustering-data-v1@27ac73a6fd sipu/a1.data.gz + labels0.gz",
        licence="none stated at the source (academic use, to be cited)",
    ),
    Source(
        name="a2",
        shape=(5250, 2),
        points_sha256="86eba64ba09ebe5d2e46d9d41900637d1be94e58896c23bf4e7b06bb977e9c6a",
        labels_sha256="45702b851f18ee0b5b85f53e85418177144d04c10ad0df1692c395e792aee228",
        publisher=(
            "SIPU / P. Fränti & S. Sieranoja, K-means properties on six clustering benchmark "
            "datasets, Applied Intelligence 48(12) 2018; cs.joensuu.fi/sipu/datasets"
        ),
        copy="gagolews/clustering-data-v1@27ac73a6fd sipu/a2.data.gz + labels0.gz",
        licence="none stated at the source (academic use, to be cited)",
    ),
    Source(
        name="a3",
        shape=(7500, 2),
        points_sha256="35682970b9b20d923b99475a385c38d9b1b4578c4e9bbf4eeee3c3f1c208c9d7",
        labels_sha256="bb1e09ae6b2cb61b6147e003eb3dc58c0c221d7fe68d33bfb1caf11bff81e54a",
        publisher=(
            "SIPU / P. Fränti & S. Sieranoja, K-means properties on six clustering benchmark "
            "datasets, Applied Intelligence 48(12) 2018; cs.joensuu.fi/sipu/datasets"
        ),
        copy="gagolews/clustering-data-v1@27ac73a6fd sipu/a3.data.gz + labels0.gz",
        licence="none stated at the source (academic use, to be cited)",
    ),
    Source(
        name="aggregation",
        shape=(788, 2),
        points_sha256="3dcecc29bcab8ace774e9fe76f11498dfc6740809af838be1e38ecf269959d84",
        labels_sha256="b03dafa92559b81acd7429d426832cd79557e70e6bd88bae5a7f4a95cdcb48a8",
        publisher=(
            "SIPU / P. Fränti & S. Sieranoja, K-means properties on six clustering benchmark "
            "datasets, Applied Intelligence 48(12) 2018; cs.joensuu.fi/sipu/datasets"
        ),
        copy="gagolews/clustering-data-v1@27ac73a6fd sipu/aggregation.data.gz + labels*.gz",
        licence="none stated at the source (academic use, to be cited)",
    ),
    Source(
        name="birch1",
        shape=(100000, 2),
        points_sha256="7cf8c2bae203ce050dbf5cca2f27ba4154a29ecd7941ea30a8a160c775731e7c",
        labels_sha256="9dc3e414837108339dba08679bf3ba0edd4f5c197e53851024434d6462cdf71d",
        publisher=(
            "Zhang, Ramakrishnan, Livny, BIRCH, DMKD 1(2) 1997; via SIPU / P. Fränti & S. "
            "Sieranoja, K-means properties on six clustering benchmark datasets, Applied "
            "Intelligence 48(12) 2018; cs.joensuu.fi/sipu/datasets"
        ),
        copy="gagolews/clustering-data-v1@27ac73a6fd sipu/birch1.data.gz + labels0.gz",
        licence="none stated at the source (academic use, to be cited)",
    ),
    Source(
        name="birch2",
        shape=(100000, 2),
        points_sha256="c8c4676da756fb356e846565c6343229a52e53a6926bce6af7392fe8a7ed9e2c",
        labels_sha256="ec85292354c99d6063d687a2131e070ccc13374db70f26b1a713cb62aa7b0ac9",
        publisher=(
            "Zhang, Ramakrishnan, Livny, BIRCH, DMKD 1(2) 1997; via SIPU / P. Fränti & S. "
            "Sieranoja, K-means properties on six clustering benchmark datasets, Applied "
            "Intelligence 48(12) 2018; cs.joensuu.fi/sipu/datasets"
        ),
        copy="gagolews/clustering-data-v1@27ac73a6fd sipu/birch2.data.gz + labels0.gz",
        licence="none stated at the source (academic use, to be cited)",
    ),
    Source(
        name="birch3",
        shape=(100000, 2),
        points_sha256="d3051936d0125d291491fe567a957d6e43eea586f3753038bddd9a5bcfb24f65",
        labels_sha256=None,
        publisher=(
            "Zhang, Ramakrishnan, Livny, BIRCH, DMKD 1(2) 1997; via SIPU / P. Fränti & S. "
            "Sieranoja, K-means properties on six clustering benchmark datasets, Applied "
            "Intelligence 48(12) 2018; cs.joensuu.fi/sipu/datasets"
        ),
        copy="ivo-pontes/KMeansIA@d01a267c9d birch3.txt",
        licence="none stated at the source (academic use, to be cited)",
    ),
    Source(
        name="bridge",
        shape=(4096, 16),
        points_sha256="23f3a2b9a28b9397131f70ecece362c6f635e876ac9f9f76fd88f00cf5efe8ba",
        labels_sha256=None,
        publisher="SIPU image/VQ data: 4x4 blocks of 256x256 grey 'Bridge' image (Fränti et al.)",
        copy="asdaa/Clustering-algorithms@d25ccb66e1 datasets/bridge.txt",
        licence="none stated at the source (academic use, to be cited)",
    ),
    Source(
        name="d31",
        shape=(3100, 2),
        points_sha256="9e6b859d5700e8d2da9adb2464b2e396db6514097161bd7bfb794072a2e75fa2",
        labels_sha256="6cddcba377d92876b12f131e6f3d94854bc8fa5a8cce9080e8887c26fd773f6c",
        publisher=(
            "SIPU / P. Fränti & S. Sieranoja, K-means properties on six clustering benchmark "
            "datasets, Applied Intelligence 48(12) 2018; cs.joensuu.fi/sipu/datasets"
        ),
        copy="gagolews/clustering-data-v1@27ac73a6fd sipu/d31.data.gz + labels*.gz",
        licence="none stated at the source (academic use, to be cited)",
    ),
    Source(
        name="glass",
        shape=(214, 9),
        points_sha256="ec3bb3cbe02e01600db223bfebc8573a269585bfbf07dd37d7e4c25ec77396f6",
        labels_sha256="94984bf78b05ffd15e57a6a42ea1c48df7d0144ba0ba88dd68f898663b499aa5",
        publisher="UCI id 42",
        copy="cdvel/Datasets glass.csv",
        licence="UCI Machine Learning Repository (UCI lists CC BY 4.0; not stated in the copy)",
    ),
    Source(
        name="iris",
        shape=(150, 4),
        points_sha256="012f498fe9c8b3b34212c3c5d98e1f03f2f79931cd49349beb1bad64dcf164a7",
        labels_sha256="49a02ef431bdf386a4ec234a34e2bf494274e466a3a1c1133c820fdae5c565e8",
        publisher=(
            "Fisher 1936 / Anderson 1935 (R datasets::iris - Fisher's original values, "
            "identical to sklearn's; UCI's iris.data differs in rows 35 and 38)"
        ),
        copy="vincentarelbundock/Rdatasets@1dcc2bf5f9 csv/datasets/iris.csv",
        licence="public domain data; Rdatasets GPL-3",
    ),
    Source(
        name="mice_protein",
        shape=(1080, 77),
        points_sha256="02e9e62094023d8d36fdbbaa82de9a72bbac0dbadb20cff39026a63facc62cb9",
        labels_sha256="110c75ec108f413add5e23f850a66bcc324f9efaf394f519cbe3f5e8fabc3b8a",
        publisher="UCI id 342; Higuera, Gardiner, Cios, PLoS ONE 10(6) 2015",
        copy="haziqj/rec-jrss-reply@91ab8245c0 data/Data_Cortex_Nuclear.csv",
        licence="CC BY 4.0 at UCI (not stated in the copy)",
    ),
    Source(
        name="mnist_test",
        shape=(10000, 784),
        points_sha256="8eea5bedbc86985a1b6fad96bd5156f8c39ab805c0b33f13e301f855d096ef11",
        labels_sha256="83b59d31f2e3a915ebc51fbff8f778ef4bfb7874f1d98b0a19669f173c6c10c4",
        publisher="LeCun, Cortes, Burges (MNIST, from NIST SD-19)",
        copy=(
            "rasbt/mnist-pngs@d26bd33bf1 test/<digit>/<index>.png (lossless 8-bit PNG, index "
            "= original order)"
        ),
        licence=(
            "repo MIT (R. Raschka's png copy); MNIST itself: no licence in the files, widely "
            "stated CC BY-SA 3.0"
        ),
    ),
    Source(
        name="mnist_train",
        shape=(60000, 784),
        points_sha256="c63b9d3c1852d4cceeb2e88495fcf71b28c9c7a217df3ffb45e59d3ed7ad8fdc",
        labels_sha256="74ee0b88b28d9797a98ceab95547a05b22ae2f91011d2b5cf39ffbfc823926d1",
        publisher="LeCun, Cortes, Burges (MNIST, from NIST SD-19)",
        copy=(
            "rasbt/mnist-pngs@d26bd33bf1 train/<digit>/<index>.png (lossless 8-bit PNG, "
            "index = original order)"
        ),
        licence=(
            "repo MIT (R. Raschka's png copy); MNIST itself: no licence in the files, widely "
            "stated CC BY-SA 3.0"
        ),
    ),
    Source(
        name="mssc_german",
        shape=(59, 2),
        points_sha256="e68449a5d6f76db149488c45e29c8541d5a353d309cc5597eeae500d10c15eb4",
        labels_sha256=None,
        publisher=(
            "Späth German towns 59x2 coordinates - MSSC benchmark set used in Gribel & Vidal "
            "2019 (HG-means)"
        ),
        copy="danielgribel/hg-means@3b4880fdbf data/german.txt",
        licence="repo GPL-3; original Späth 1980 / UCI",
    ),
    Source(
        name="pendigits",
        shape=(10992, 16),
        points_sha256="12e5c745f43d6541ecf86968aa33119853cebd7f7a11cb89b236c38fddfd08e9",
        labels_sha256="af51136d60ae228de714bbd1073de31b2b19948dafa53f36290ec1a1d366a868",
        publisher="UCI id 81 (Alpaydin, Alimoglu)",
        copy="kgolofit/MOW-14Z@0352d2ad44 pendigits.tra (7494) + pendigits.tes (3498)",
        licence="UCI Machine Learning Repository (UCI lists CC BY 4.0; not stated in the copy)",
    ),
    Source(
        name="r15",
        shape=(600, 2),
        points_sha256="852f0d64172861e839901abe48302fffc75baa53bae4e4c7bdc4d4d878798bf1",
        labels_sha256="05b92ab6a2f6bb1c14994852bd62db1fc977eb4818a72c90c843c032353f1db6",
        publisher=(
            "SIPU / P. Fränti & S. Sieranoja, K-means properties on six clustering benchmark "
            "datasets, Applied Intelligence 48(12) 2018; cs.joensuu.fi/sipu/datasets"
        ),
        copy="gagolews/clustering-data-v1@27ac73a6fd sipu/r15.data.gz + labels*.gz",
        licence="none stated at the source (academic use, to be cited)",
    ),
    Source(
        name="rainfall_india",
        shape=(4116, 12),
        points_sha256="c9e7dcdeb19ba2f410d3078b6fe6da1bfb66eacd8302098a57f6ffed88b4a49b",
        labels_sha256="faefcfd056501bc300376408a702a18ee2f2dd006d56ec3cf5302f0d5e110a8b",
        publisher="data.gov.in / India Meteorological Department via Kaggle",
        copy=(
            "SaiRamDileep/Rainfall-Analysis-in-India-1901-2015-@e7f11e7766 'rainfall in "
            "india 1901-2015.csv'"
        ),
        licence="GODL-India / Kaggle, not stated in the copy",
        is_single=True,
    ),
    Source(
        name="road3d_subset",
        shape=(5000, 3),
        points_sha256="11820b3b87eeea6e41056676b112143035befbadf28f7eaf55ccb6cc4fee3e7f",
        labels_sha256=None,
        publisher="UCI id 246 (Kaul, Yang, Jensen 2013)",
        copy="annlin90/csv-test@96136af3dc 3D_spatial_network.csv",
        licence="UCI Machine Learning Repository (UCI lists CC BY 4.0; not stated in the copy)",
    ),
    Source(
        name="ruspini",
        shape=(75, 2),
        points_sha256="a746c0a80ecf5896384b97f08e06a0af3c0abc560b9e9d60c24b82fe5bd47cdb",
        labels_sha256="4ea321bbf1b4e51f75434ea346080dd7382e968ba7b1d6846aef0dc0b6396e7f",
        publisher="Ruspini 1970 (R package cluster)",
        copy="vincentarelbundock/Rdatasets csv/cluster/ruspini.csv",
        licence="R cluster GPL>=2",
    ),
    Source(
        name="s1",
        shape=(5000, 2),
        points_sha256="21c20e28e1ebba24edd6013072b2a4c62ecf58fa6b5e22bda71f14fbf6a99804",
        labels_sha256="cb4b936ad30fc6a5e3cf5af50836fa61aceacc121785a1ff68f60c398609dd63",
        publisher=(
            "SIPU / P. Fränti & S. Sieranoja, K-means properties on six clustering benchmark "
            "datasets, Applied Intelligence 48(12) 2018; cs.joensuu.fi/sipu/datasets"
        ),
        copy="gagolews/clustering-data-v1@27ac73a6fd sipu/s1.data.gz + labels0.gz",
        licence="none stated at the source (academic use, to be cited)",
    ),
    Source(
        name="s2",
        shape=(5000, 2),
        points_sha256="5afd2d6316d66cddad4a23facf7c5ca9e0cf1642935783a93c0d442676f90cc2",
        labels_sha256="bfa61424494504cdc275c1bdf3b833599963eca0f88ce74f41d76b7e1b746f94",
        publisher=(
            "SIPU / P. Fränti & S. Sieranoja, K-means properties on six clustering benchmark "
            "datasets, Applied Intelligence 48(12) 2018; cs.joensuu.fi/sipu/datasets"
        ),
        copy="gagolews/clustering-data-v1@27ac73a6fd sipu/s2.data.gz + labels0.gz",
        licence="none stated at the source (academic use, to be cited)",
    ),
    Source(
        name="s3",
        shape=(5000, 2),
        points_sha256="d36bf340c2a76d2c17d8084758bfd8bf32bb875e289fca53777324f197530e05",
        labels_sha256="65b6a4d724193343aca4655cab04a700e7ef76a890ff6abc318037fba80099e5",
        publisher=(
            "SIPU / P. Fränti & S. Sieranoja, K-means properties on six clustering benchmark "
            "datasets, Applied Intelligence 48(12) 2018; cs.joensuu.fi/sipu/datasets"
        ),
        copy="gagolews/clustering-data-v1@27ac73a6fd sipu/s3.data.gz + labels0.gz",
        licence="none stated at the source (academic use, to be cited)",
    ),
    Source(
        name="s4",
        shape=(5000, 2),
        points_sha256="7b0a26ae0b80f8afbad5c2a37a54d56a9ef3cdaad3861c3109767f1c7eff7ff3",
        labels_sha256="a048de65cbb01a04b6f1cf4d124b467641a3ae0df524de92f59abc1e0c4e3578",
        publisher=(
            "SIPU / P. Fränti & S. Sieranoja, K-means properties on six clustering benchmark "
            "datasets, Applied Intelligence 48(12) 2018; cs.joensuu.fi/sipu/datasets"
        ),
        copy="gagolews/clustering-data-v1@27ac73a6fd sipu/s4.data.gz + labels0.gz",
        licence="none stated at the source (academic use, to be cited)",
    ),
    Source(
        name="sales_weekly_counts",
        shape=(811, 52),
        points_sha256="1b3740cfe21d9ac87a45ce17a64f81eb7590122c94fecb555ee821127c1342e2",
        labels_sha256=None,
        publisher="UCI id 396 Sales Transactions Weekly (Tan, San Lau)",
        copy="antoniosudoso/sos-sdp@e485811bb8 datasets/sales_weekly.zip (first 52 of 106 columns)",
        licence="CC BY 4.0 at UCI; repo GPL-3",
    ),
    Source(
        name="segmentation",
        shape=(2310, 19),
        points_sha256="28985038149ca8d7cf628ec3e9d6b0be8f4731d9949506f6d00958cfefcb6f79",
        labels_sha256="293e895b3ea0648b170bf73d603c0d5335dec0d150ca0e3942bc039176e96218",
        publisher="UCI id 50 Image Segmentation",
        copy=(
            "newtonlb/ProjetoAM@0ec4ab9d39 segmentation.data (first 210 rows) + "
            "segmentation.test (2100)"
        ),
        licence="UCI Machine Learning Repository (UCI lists CC BY 4.0; not stated in the copy)",
    ),
    Source(
        name="skf_BASEHOCK",
        shape=(1993, 4862),
        points_sha256="ab233c560bb6888d2f05a64628df35b76c1da8acd1717297ae57d91440426cef",
        labels_sha256="d82694d64f01ff0c84993b4a02d7652ec495d5e8c8a7f635673c1cc4e2cca897",
        publisher=(
            "20 Newsgroups baseball vs hockey, term counts (ASU feature selection repository)"
        ),
        copy="jundongl/scikit-feature@48cffad4e8 skfeature/data/BASEHOCK.mat",
        licence="repo GPL-2; originals public research data",
    ),
    Source(
        name="skin",
        shape=(245057, 3),
        points_sha256="fe9f35130c625284bd813be68949f9411e4de96cbc68867fa3e8092fee6d7567",
        labels_sha256="00f45123164f4d6779e276dfd9d74214441a4c932f1af59657392914fff23195",
        publisher="UCI id 229 Skin Segmentation (Bhatt, Dhall)",
        copy=(
            "ClaudiuGeorgiu/Classification@a3bc158dce Skin_NonSkin.txt (header line added by "
            "that repo)"
        ),
        licence="UCI Machine Learning Repository (UCI lists CC BY 4.0; not stated in the copy)",
    ),
    Source(
        name="tcga_rnaseq5",
        shape=(300, 20531),
        points_sha256="b9423c9f6a6673ab5ecccb61538f001a911cff546dc11621697e4a461a2c1ac2",
        labels_sha256="23ac5bf02d42ff8259d1083adf4bef76ee6bd58a29047c8dcff2c3cd8a26ea95",
        publisher=(
            "TCGA via Broad GDAC Firehose 2016-01-28, Illumina HiSeq RNASeqV2 Level 3 RSEM "
            "gene-normalised (R package RTCGA.rnaseq.20160128, M. Kosinski)"
        ),
        copy=(
            "RTCGA/RTCGA.rnaseq.20160128@a27dfdb25a "
            "data/{ACC,CHOL,DLBC,UCS,UVM}.rnaseq.20160128.rda"
        ),
        licence="package GPL-2; TCGA open-access data (no restriction; cite TCGA)",
        is_single=True,
    ),
    Source(
        name="tcga_uci5classes_3700genes",
        shape=(335, 3664),
        points_sha256="dadee615d9cabbc27130ac79f8be0f02e20e2b011e2bbed1a05cdfa914e582bb",
        labels_sha256="8b1af24de53da9a5a14375d3a8b862a018932fcee4e7f3c2757ca13e4b124735",
        publisher="TCGA RNA-Seq (Guo, Yu et al., MetaGSCA)",
        copy="Haocan223/MetaGSCA@7d51dbd863 data/<COHORT>.RData",
        licence="package GPL-2; TCGA open-access data",
        is_single=True,
    ),
    Source(
        name="tsp_pcb3038",
        shape=(3038, 2),
        points_sha256="92a639b5f0f33258bb9f2f51705de7aac5418a3a07e819796b5614559608beb4",
        labels_sha256=None,
        publisher="TSPLIB95: Drilling problem (Junger/Reinelt)",
        copy="mastqe/tsplib@775541365d pcb3038.tsp (EUC_2D)",
        licence=(
            "TSPLIB95, G. Reinelt, Univ. Heidelberg; no licence stated (freely distributed "
            "for research)"
        ),
    ),
    Source(
        name="tsp_pla85900",
        shape=(85900, 2),
        points_sha256="02d965ef50bc4136c4003eb78bae603cb6b7702b51b7a75f207a49a5f6648037",
        labels_sha256=None,
        publisher="TSPLIB95: Programmed logic array (Johnson)",
        copy="mastqe/tsplib@775541365d pla85900.tsp (CEIL_2D)",
        licence=(
            "TSPLIB95, G. Reinelt, Univ. Heidelberg; no licence stated (freely distributed "
            "for research)"
        ),
    ),
    Source(
        name="tsp_pr2392",
        shape=(2392, 2),
        points_sha256="7064a73913e47dd06a4b34abbed4d0a4db90dfef6600360562bb6473b12eae3c",
        labels_sha256=None,
        publisher="TSPLIB95: 2392-city problem (Padberg/Rinaldi)",
        copy="mastqe/tsplib@775541365d pr2392.tsp (EUC_2D)",
        licence=(
            "TSPLIB95, G. Reinelt, Univ. Heidelberg; no licence stated (freely distributed "
            "for research)"
        ),
    ),
    Source(
        name="tsp_u1060",
        shape=(1060, 2),
        points_sha256="e41d8d3064436e321ed28ee19d98bb44263c6ac39d0dcac348afb85e0ed4097b",
        labels_sha256=None,
        publisher="TSPLIB95: Drilling problem problem (Reinelt)",
        copy="mastqe/tsplib@775541365d u1060.tsp (EUC_2D)",
        licence=(
            "TSPLIB95, G. Reinelt, Univ. Heidelberg; no licence stated (freely distributed "
            "for research)"
        ),
    ),
    Source(
        name="unbalance",
        shape=(6500, 2),
        points_sha256="6f2071f219a59fe7de9806d26cc3c824686f6ca07f403e75f116f8271796d28e",
        labels_sha256="580c6925a97ce320c86fd4dbfcf3bfe60a9331c5df07ed2fdd56c6c109986750",
        publisher=(
            "SIPU / P. Fränti & S. Sieranoja, K-means properties on six clustering benchmark "
            "datasets, Applied Intelligence 48(12) 2018; cs.joensuu.fi/sipu/datasets"
        ),
        copy="gagolews/clustering-data-v1@27ac73a6fd sipu/unbalance.data.gz + labels0.gz",
        licence="none stated at the source (academic use, to be cited)",
    ),
    Source(
        name="wine",
        shape=(178, 13),
        points_sha256="8edcf3903afd97c64d51e0212eb10b213f7943da650574d1c055b836c5c35d37",
        labels_sha256="28570293bbf6f313e8d190dcfbf248222abeaf61e8c7741a933516fc93507102",
        publisher="UCI",
        copy="gagolews/clustering-data-v1 uci/wine.data.gz (+labels0)",
        licence="UCI Machine Learning Repository (UCI lists CC BY 4.0; not stated in the copy)",
    ),
]

SOURCES = {source.name: source for source in _ALL}
