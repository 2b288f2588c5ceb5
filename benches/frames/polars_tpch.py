"""The 22 questions of TPC-H for Polars, lazily. Amounts of money are floats, as in its public runs."""
from datetime import date

import polars as pl
import polars.selectors as cs

c = pl.col
PRICE = c("l_extendedprice") * (1 - c("l_discount"))


def between(column, first, after):
    return (first <= c(column)) & (c(column) < after)


def q01(t):
    charge = PRICE * (1 + c("l_tax"))
    return (
        t["lineitem"]
        .filter(c("l_shipdate") <= date(1998, 9, 2))
        .group_by("l_returnflag", "l_linestatus")
        .agg(
            c("l_quantity").sum().alias("sum_qty"),
            c("l_extendedprice").sum().alias("sum_base_price"),
            PRICE.sum().alias("sum_disc_price"),
            charge.sum().alias("sum_charge"),
            c("l_quantity").mean().alias("avg_qty"),
            c("l_extendedprice").mean().alias("avg_price"),
            c("l_discount").mean().alias("avg_disc"),
            pl.len().alias("count_order"),
        )
        .sort("l_returnflag", "l_linestatus")
    )


def q02(t):
    offers = (
        t["partsupp"]
        .join(t["supplier"], left_on="ps_suppkey", right_on="s_suppkey")
        .join(t["nation"], left_on="s_nationkey", right_on="n_nationkey")
        .join(t["region"].filter(c("r_name") == "EUROPE"), left_on="n_regionkey", right_on="r_regionkey")
    )
    parts = t["part"].filter((c("p_size") == 15) & c("p_type").str.ends_with("BRASS"))
    offered = parts.join(offers, left_on="p_partkey", right_on="ps_partkey")
    least = offered.group_by("p_partkey").agg(c("ps_supplycost").min())
    columns = ["s_acctbal", "s_name", "n_name", "p_partkey", "p_mfgr", "s_address", "s_phone", "s_comment"]
    order = ["s_acctbal", "n_name", "s_name", "p_partkey"]
    found = offered.join(least, on=["p_partkey", "ps_supplycost"]).select(columns)
    return found.sort(order, descending=[True, False, False, False]).head(100)


def q03(t):
    building = t["customer"].filter(c("c_mktsegment") == "BUILDING")
    orders = t["orders"].filter(c("o_orderdate") < date(1995, 3, 15))
    lines = t["lineitem"].filter(date(1995, 3, 15) < c("l_shipdate"))
    return (
        building.join(orders, left_on="c_custkey", right_on="o_custkey")
        .join(lines, left_on="o_orderkey", right_on="l_orderkey")
        .group_by("o_orderkey", "o_orderdate", "o_shippriority")
        .agg(PRICE.sum().alias("revenue"))
        .select(c("o_orderkey").alias("l_orderkey"), "revenue", "o_orderdate", "o_shippriority")
        .sort("revenue", "o_orderdate", descending=[True, False])
        .head(10)
    )


def q04(t):
    late = t["lineitem"].filter(c("l_commitdate") < c("l_receiptdate"))
    return (
        t["orders"]
        .filter(between("o_orderdate", date(1993, 7, 1), date(1993, 10, 1)))
        .join(late, left_on="o_orderkey", right_on="l_orderkey", how="semi")
        .group_by("o_orderpriority")
        .agg(pl.len().alias("order_count"))
        .sort("o_orderpriority")
    )


def q05(t):
    asia = t["region"].filter(c("r_name") == "ASIA").join(t["nation"], left_on="r_regionkey", right_on="n_regionkey")
    orders = t["orders"].filter(between("o_orderdate", date(1994, 1, 1), date(1995, 1, 1)))
    keys = {"left_on": ["l_suppkey", "n_nationkey"], "right_on": ["s_suppkey", "s_nationkey"]}
    return (
        asia.join(t["customer"], left_on="n_nationkey", right_on="c_nationkey")
        .join(orders, left_on="c_custkey", right_on="o_custkey")
        .join(t["lineitem"], left_on="o_orderkey", right_on="l_orderkey")
        .join(t["supplier"], **keys)
        .group_by("n_name")
        .agg(PRICE.sum().alias("revenue"))
        .sort("revenue", descending=True)
    )


def q06(t):
    cheap = c("l_discount").is_between(0.05, 0.07) & (c("l_quantity") < 24)
    lines = t["lineitem"].filter(between("l_shipdate", date(1994, 1, 1), date(1995, 1, 1)) & cheap)
    return lines.select((c("l_extendedprice") * c("l_discount")).sum().alias("revenue"))


def q07(t):
    two = t["nation"].filter(c("n_name").is_in(["FRANCE", "GERMANY"]))
    sellers = t["supplier"].join(two, left_on="s_nationkey", right_on="n_nationkey")
    buyers = t["customer"].join(two, left_on="c_nationkey", right_on="n_nationkey")
    sellers = sellers.select("s_suppkey", c("n_name").alias("supp_nation"))
    buyers = buyers.select("c_custkey", c("n_name").alias("cust_nation"))
    return (
        t["lineitem"]
        .filter(c("l_shipdate").is_between(date(1995, 1, 1), date(1996, 12, 31)))
        .join(sellers, left_on="l_suppkey", right_on="s_suppkey")
        .join(t["orders"], left_on="l_orderkey", right_on="o_orderkey")
        .join(buyers, left_on="o_custkey", right_on="c_custkey")
        .filter(c("supp_nation") != c("cust_nation"))
        .group_by("supp_nation", "cust_nation", c("l_shipdate").dt.year().alias("l_year"))
        .agg(PRICE.sum().alias("revenue"))
        .sort("supp_nation", "cust_nation", "l_year")
    )


def q08(t):
    america = t["region"].filter(c("r_name") == "AMERICA")
    nations = t["nation"].join(america, left_on="n_regionkey", right_on="r_regionkey", how="semi")
    buyers = t["customer"].join(nations, left_on="c_nationkey", right_on="n_nationkey", how="semi")
    steel = t["part"].filter(c("p_type") == "ECONOMY ANODIZED STEEL")
    orders = t["orders"].filter(c("o_orderdate").is_between(date(1995, 1, 1), date(1996, 12, 31)))
    brazil = pl.when(c("n_name") == "BRAZIL").then(PRICE).otherwise(0.0)
    return (
        t["lineitem"]
        .join(steel, left_on="l_partkey", right_on="p_partkey", how="semi")
        .join(orders, left_on="l_orderkey", right_on="o_orderkey")
        .join(buyers, left_on="o_custkey", right_on="c_custkey", how="semi")
        .join(t["supplier"], left_on="l_suppkey", right_on="s_suppkey")
        .join(t["nation"], left_on="s_nationkey", right_on="n_nationkey")
        .group_by(c("o_orderdate").dt.year().alias("o_year"))
        .agg((brazil.sum() / PRICE.sum()).alias("mkt_share"))
        .sort("o_year")
    )


def q09(t):
    green = t["part"].filter(c("p_name").str.contains("green", literal=True))
    keys = {"left_on": ["l_partkey", "l_suppkey"], "right_on": ["ps_partkey", "ps_suppkey"]}
    amount = PRICE - c("ps_supplycost") * c("l_quantity")
    return (
        t["lineitem"]
        .join(green, left_on="l_partkey", right_on="p_partkey", how="semi")
        .join(t["partsupp"], **keys)
        .join(t["supplier"], left_on="l_suppkey", right_on="s_suppkey")
        .join(t["nation"], left_on="s_nationkey", right_on="n_nationkey")
        .join(t["orders"], left_on="l_orderkey", right_on="o_orderkey")
        .group_by(c("n_name").alias("nation"), c("o_orderdate").dt.year().alias("o_year"))
        .agg(amount.sum().alias("sum_profit"))
        .sort("nation", "o_year", descending=[False, True])
    )


def q10(t):
    orders = t["orders"].filter(between("o_orderdate", date(1993, 10, 1), date(1994, 1, 1)))
    returned = t["lineitem"].filter(c("l_returnflag") == "R")
    customer = ["c_custkey", "c_name", "c_acctbal", "c_phone", "n_name", "c_address", "c_comment"]
    return (
        t["customer"]
        .join(orders, left_on="c_custkey", right_on="o_custkey")
        .join(returned, left_on="o_orderkey", right_on="l_orderkey")
        .join(t["nation"], left_on="c_nationkey", right_on="n_nationkey")
        .group_by(customer)
        .agg(PRICE.sum().alias("revenue"))
        .sort("revenue", descending=True)
        .head(20)
    )


def q11(t):
    german = (
        t["partsupp"]
        .join(t["supplier"], left_on="ps_suppkey", right_on="s_suppkey")
        .join(t["nation"].filter(c("n_name") == "GERMANY"), left_on="s_nationkey", right_on="n_nationkey")
        .with_columns((c("ps_supplycost") * c("ps_availqty")).alias("value"))
    )
    least = german.select((c("value").sum() * 0.0001).alias("least"))
    return (
        german.group_by("ps_partkey")
        .agg(c("value").sum())
        .join(least, how="cross")
        .filter(c("least") < c("value"))
        .select("ps_partkey", "value")
        .sort("value", descending=True)
    )


def q12(t):
    urgent = c("o_orderpriority").is_in(["1-URGENT", "2-HIGH"])
    in_time = (c("l_commitdate") < c("l_receiptdate")) & (c("l_shipdate") < c("l_commitdate"))
    when = between("l_receiptdate", date(1994, 1, 1), date(1995, 1, 1))
    lines = t["lineitem"].filter(c("l_shipmode").is_in(["MAIL", "SHIP"]) & in_time & when)
    return (
        t["orders"]
        .join(lines, left_on="o_orderkey", right_on="l_orderkey")
        .group_by("l_shipmode")
        .agg(urgent.sum().alias("high_line_count"), (~urgent).sum().alias("low_line_count"))
        .sort("l_shipmode")
    )


def q13(t):
    plain = t["orders"].filter(~c("o_comment").str.contains("special.*requests"))
    return (
        t["customer"]
        .join(plain, left_on="c_custkey", right_on="o_custkey", how="left")
        .group_by("c_custkey")
        .agg(c("o_orderkey").count().alias("c_count"))
        .group_by("c_count")
        .agg(pl.len().alias("custdist"))
        .sort("custdist", "c_count", descending=True)
    )


def q14(t):
    lines = t["lineitem"].filter(between("l_shipdate", date(1995, 9, 1), date(1995, 10, 1)))
    promoted = pl.when(c("p_type").str.starts_with("PROMO")).then(PRICE).otherwise(0.0)
    joined = lines.join(t["part"], left_on="l_partkey", right_on="p_partkey")
    return joined.select((100.0 * promoted.sum() / PRICE.sum()).alias("promo_revenue"))


def q15(t):
    lines = t["lineitem"].filter(between("l_shipdate", date(1996, 1, 1), date(1996, 4, 1)))
    revenue = lines.group_by("l_suppkey").agg(PRICE.sum().alias("total_revenue"))
    most = revenue.filter(c("total_revenue") == c("total_revenue").max())
    columns = ["s_suppkey", "s_name", "s_address", "s_phone", "total_revenue"]
    return t["supplier"].join(most, left_on="s_suppkey", right_on="l_suppkey").select(columns).sort("s_suppkey")


def q16(t):
    other = (c("p_brand") != "Brand#45") & ~c("p_type").str.starts_with("MEDIUM POLISHED")
    parts = t["part"].filter(other & c("p_size").is_in([49, 14, 23, 45, 19, 3, 36, 9]))
    complained = t["supplier"].filter(c("s_comment").str.contains("Customer.*Complaints"))
    return (
        t["partsupp"]
        .join(parts, left_on="ps_partkey", right_on="p_partkey")
        .join(complained, left_on="ps_suppkey", right_on="s_suppkey", how="anti")
        .group_by("p_brand", "p_type", "p_size")
        .agg(c("ps_suppkey").n_unique().alias("supplier_cnt"))
        .sort("supplier_cnt", "p_brand", "p_type", "p_size", descending=[True, False, False, False])
    )


def q17(t):
    boxes = t["part"].filter((c("p_brand") == "Brand#23") & (c("p_container") == "MED BOX"))
    lines = t["lineitem"].join(boxes, left_on="l_partkey", right_on="p_partkey", how="semi")
    few = lines.group_by("l_partkey").agg((0.2 * c("l_quantity").mean()).alias("few"))
    found = lines.join(few, on="l_partkey").filter(c("l_quantity") < c("few"))
    return found.select((c("l_extendedprice").sum() / 7.0).alias("avg_yearly"))


def q18(t):
    large = t["lineitem"].group_by("l_orderkey").agg(c("l_quantity").sum().alias("q")).filter(300 < c("q"))
    columns = ["c_name", "c_custkey", "o_orderkey", "o_orderdate", "o_totalprice", "q"]
    return (
        t["orders"]
        .join(large, left_on="o_orderkey", right_on="l_orderkey")
        .join(t["customer"], left_on="o_custkey", right_on="c_custkey")
        .with_columns(c("o_custkey").alias("c_custkey"))
        .select(columns)
        .sort("o_totalprice", "o_orderdate", descending=[True, False])
        .head(100)
    )


def q19(t):
    def kind(brand, size, least, largest):
        containers = {"SM": ["CASE", "BOX", "PACK", "PKG"], "MED": ["BAG", "BOX", "PKG", "PACK"], "LG": ["CASE", "BOX", "PACK", "PKG"]}
        names = [f"{size} {name}" for name in containers[size]]
        quantity = c("l_quantity").is_between(least, least + 10)
        return (c("p_brand") == brand) & c("p_container").is_in(names) & quantity & c("p_size").is_between(1, largest)

    kinds = kind("Brand#12", "SM", 1, 5) | kind("Brand#23", "MED", 10, 10) | kind("Brand#34", "LG", 20, 15)
    by_air = c("l_shipmode").is_in(["AIR", "AIR REG"]) & (c("l_shipinstruct") == "DELIVER IN PERSON")
    joined = t["lineitem"].filter(by_air).join(t["part"], left_on="l_partkey", right_on="p_partkey")
    return joined.filter(kinds).select(PRICE.sum().alias("revenue"))


def q20(t):
    forest = t["part"].filter(c("p_name").str.starts_with("forest"))
    lines = t["lineitem"].filter(between("l_shipdate", date(1994, 1, 1), date(1995, 1, 1)))
    half = lines.group_by("l_partkey", "l_suppkey").agg((0.5 * c("l_quantity").sum()).alias("half"))
    keys = {"left_on": ["ps_partkey", "ps_suppkey"], "right_on": ["l_partkey", "l_suppkey"]}
    ample = (
        t["partsupp"]
        .join(forest, left_on="ps_partkey", right_on="p_partkey", how="semi")
        .join(half, **keys)
        .filter(c("half") < c("ps_availqty"))
    )
    return (
        t["supplier"]
        .join(t["nation"].filter(c("n_name") == "CANADA"), left_on="s_nationkey", right_on="n_nationkey", how="semi")
        .join(ample, left_on="s_suppkey", right_on="ps_suppkey", how="semi")
        .select("s_name", "s_address")
        .sort("s_name")
    )


def q21(t):
    suppliers = t["lineitem"].group_by("l_orderkey").agg(c("l_suppkey").n_unique().alias("suppliers"))
    late = t["lineitem"].filter(c("l_commitdate") < c("l_receiptdate"))
    late_ones = late.group_by("l_orderkey").agg(c("l_suppkey").n_unique().alias("late_suppliers"))
    saudi = t["nation"].filter(c("n_name") == "SAUDI ARABIA")
    return (
        late.join(suppliers.filter(1 < c("suppliers")), on="l_orderkey", how="semi")
        .join(late_ones.filter(c("late_suppliers") == 1), on="l_orderkey", how="semi")
        .join(t["orders"].filter(c("o_orderstatus") == "F"), left_on="l_orderkey", right_on="o_orderkey", how="semi")
        .join(t["supplier"], left_on="l_suppkey", right_on="s_suppkey")
        .join(saudi, left_on="s_nationkey", right_on="n_nationkey", how="semi")
        .group_by("s_name")
        .agg(pl.len().alias("numwait"))
        .sort("numwait", "s_name", descending=[True, False])
        .head(100)
    )


def q22(t):
    codes = ["13", "31", "23", "29", "30", "18", "17"]
    customers = t["customer"].with_columns(c("c_phone").str.slice(0, 2).alias("cntrycode"))
    customers = customers.filter(c("cntrycode").is_in(codes))
    mean = customers.filter(0.0 < c("c_acctbal")).select(c("c_acctbal").mean().alias("mean"))
    return (
        customers.join(mean, how="cross")
        .filter(c("mean") < c("c_acctbal"))
        .join(t["orders"], left_on="c_custkey", right_on="o_custkey", how="anti")
        .group_by("cntrycode")
        .agg(pl.len().alias("numcust"), c("c_acctbal").sum().alias("totacctbal"))
        .sort("cntrycode")
    )


def questions(tables):
    """The questions by name, of lazy tables."""
    money = {name: table.with_columns(cs.decimal().cast(pl.Float64)) for name, table in tables.items()}
    every = [q01, q02, q03, q04, q05, q06, q07, q08, q09, q10, q11, q12, q13, q14, q15, q16, q17, q18, q19, q20, q21, q22]
    return {question.__name__: question(money) for question in every}
