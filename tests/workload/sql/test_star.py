"""Group-bys of TPC-DS over one table of facts and public dimensions, as DuckDB answers them.

The tables are made up, with the keys and columns of the benchmark; some facts have no key.
"""

import duckdb
import numpy as np
import pandas as pd
import pytest

import leastnoise as ln
from differential.exact import ExactNumbers
from leastnoise._release import answer_statement
from leastnoise._workload import SqlSettings, over_common_domain, read_statements
from workload.sql.answer_rows import assert_rows_equal, normalize, normalized_rows

KEYS = {
    "date_dim": ("d_date_sk", "ss_sold_date_sk"),
    "item": ("i_item_sk", "ss_item_sk"),
    "store": ("s_store_sk", "ss_store_sk"),
    "customer_demographics": ("cd_demo_sk", "ss_cdemo_sk"),
    "promotion": ("p_promo_sk", "ss_promo_sk"),
}
MEASURES = ("ss_quantity", "ss_list_price", "ss_ext_sales_price", "ss_net_profit")
QUERIES = {
    "q3": """SELECT dt.d_year, item.i_brand_id brand_id, item.i_brand brand,
        SUM(ss_ext_sales_price) sum_agg FROM date_dim dt, store_sales, item
        WHERE dt.d_date_sk = store_sales.ss_sold_date_sk AND store_sales.ss_item_sk = item.i_item_sk
        AND item.i_manufact_id = 1 AND dt.d_moy = 11 GROUP BY dt.d_year, item.i_brand,
        item.i_brand_id ORDER BY dt.d_year, sum_agg DESC, brand_id LIMIT 100""",
    "q7": """SELECT i_item_id, AVG(ss_quantity) agg1, AVG(ss_list_price) agg2 FROM store_sales,
        customer_demographics, date_dim, item, promotion WHERE ss_sold_date_sk = d_date_sk
        AND ss_item_sk = i_item_sk AND ss_cdemo_sk = cd_demo_sk AND ss_promo_sk = p_promo_sk
        AND cd_gender = 'M' AND cd_marital_status = 'S' AND (p_channel_email = 'N' OR
        p_channel_event = 'N') AND d_year = 2000 GROUP BY i_item_id ORDER BY i_item_id LIMIT 100""",
    "q27": """SELECT i_item_id, s_state, GROUPING(s_state) g_state, SUM(ss_quantity) agg1 FROM
        store_sales, customer_demographics, date_dim, store, item WHERE ss_sold_date_sk = d_date_sk
        AND ss_item_sk = i_item_sk AND ss_store_sk = s_store_sk AND ss_cdemo_sk = cd_demo_sk
        AND cd_gender = 'F' AND d_year = 2000 AND s_state IN ('TN', 'SD')
        GROUP BY ROLLUP (i_item_id, s_state)""",
    "q36": """SELECT SUM(ss_net_profit) / SUM(ss_ext_sales_price) AS gross_margin, i_category,
        i_class, GROUPING(i_category) + GROUPING(i_class) AS lochierarchy, RANK() OVER (PARTITION BY
        GROUPING(i_category) + GROUPING(i_class), CASE WHEN GROUPING(i_class) = 0 THEN i_category
        END ORDER BY SUM(ss_net_profit) / SUM(ss_ext_sales_price)) AS rank_within_parent
        FROM store_sales, date_dim d1, item, store WHERE d1.d_year = 2000
        AND d1.d_date_sk = ss_sold_date_sk AND i_item_sk = ss_item_sk AND s_store_sk = ss_store_sk
        AND s_state = 'TN' GROUP BY ROLLUP (i_category, i_class) HAVING COUNT(*) > 0 ORDER BY
        lochierarchy DESC, CASE WHEN lochierarchy = 0 THEN i_category END, rank_within_parent""",
    "q42": """SELECT dt.d_year, item.i_category_id, item.i_category, SUM(ss_ext_sales_price) FROM
        date_dim dt, store_sales, item WHERE dt.d_date_sk = store_sales.ss_sold_date_sk
        AND store_sales.ss_item_sk = item.i_item_sk AND item.i_manager_id = 1 AND dt.d_moy = 11
        AND dt.d_year = 2000 GROUP BY dt.d_year, item.i_category_id, item.i_category
        ORDER BY SUM(ss_ext_sales_price) DESC, dt.d_year, item.i_category_id LIMIT 100""",
    "q43": """SELECT s_store_name, s_state, SUM(CASE WHEN d_moy = 1 THEN ss_quantity ELSE NULL END)
        q1, SUM(CASE WHEN d_moy <= 6 THEN ss_quantity ELSE NULL END) q2 FROM date_dim, store_sales,
        store WHERE d_date_sk = ss_sold_date_sk AND s_store_sk = ss_store_sk AND d_year = 2000
        GROUP BY s_store_name, s_state ORDER BY s_store_name, s_state LIMIT 100""",
    "q48": """SELECT SUM(ss_quantity) FROM store_sales, store, customer_demographics, date_dim
        WHERE s_store_sk = ss_store_sk AND ss_sold_date_sk = d_date_sk AND d_year = 2000
        AND ((cd_demo_sk = ss_cdemo_sk AND cd_marital_status = 'M' AND cd_gender = 'F')
        OR (cd_demo_sk = ss_cdemo_sk AND cd_marital_status = 'S' AND cd_gender = 'M'))""",
    "q52": """SELECT dt.d_year, item.i_brand_id brand_id, item.i_brand brand,
        SUM(ss_ext_sales_price) ext_price FROM date_dim dt JOIN store_sales ON dt.d_date_sk =
        store_sales.ss_sold_date_sk JOIN item ON store_sales.ss_item_sk = item.i_item_sk WHERE
        item.i_manager_id = 1 AND dt.d_moy = 11 AND dt.d_year = 2000 GROUP BY dt.d_year,
        item.i_brand, item.i_brand_id ORDER BY dt.d_year, ext_price DESC, brand_id LIMIT 100""",
    "q55": """SELECT i_brand_id brand_id, i_brand brand, SUM(ss_ext_sales_price) ext_price FROM
        date_dim, store_sales, item WHERE d_date_sk = ss_sold_date_sk AND ss_item_sk = i_item_sk
        AND i_manager_id = 1 AND d_moy = 11 AND d_year = 1999 GROUP BY i_brand, i_brand_id
        ORDER BY ext_price DESC, i_brand_id LIMIT 100""",
    "q98": """SELECT i_item_id, i_category, SUM(ss_ext_sales_price) AS itemrevenue,
        SUM(ss_ext_sales_price) * 100.0 / SUM(SUM(ss_ext_sales_price)) OVER (PARTITION BY
        i_category) AS revenueratio FROM store_sales, item, date_dim WHERE ss_item_sk = i_item_sk
        AND i_category IN ('cat0', 'cat1') AND ss_sold_date_sk = d_date_sk AND d_year = 2000
        AND d_moy BETWEEN 2 AND 10 GROUP BY i_item_id, i_category ORDER BY i_category, i_item_id""",
}


def dimensions():
    """The public tables around the facts."""
    days = range(100, 148)
    items = range(1, 13)
    people = [(gender, status) for gender in "MF" for status in "SM"]
    return {
        "date_dim": pd.DataFrame(
            {
                "d_date_sk": days,
                "d_year": [1999 + day // 124 for day in days],
                "d_moy": [day % 12 + 1 for day in days],
            }
        ),
        "item": pd.DataFrame(
            {
                "i_item_sk": items,
                "i_item_id": [f"A{item:03}" for item in items],
                "i_brand_id": [item % 5 for item in items],
                "i_brand": [f"brand {item % 5}" for item in items],
                "i_category_id": [item % 3 for item in items],
                "i_category": [f"cat{item % 3}" for item in items],
                "i_class": [f"class {item % 6}" for item in items],
                "i_manufact_id": [item % 4 for item in items],
                "i_manager_id": [item % 2 for item in items],
            }
        ),
        "store": pd.DataFrame(
            {
                "s_store_sk": range(1, 5),
                "s_store_name": ["able", "bar", "able", "ese"],
                "s_state": ["TN", "TN", "SD", "AL"],
            }
        ),
        "customer_demographics": pd.DataFrame(
            [(key, *facts) for key, facts in enumerate(people, 1)],
            columns=["cd_demo_sk", "cd_gender", "cd_marital_status"],
        ),
        "promotion": pd.DataFrame(
            {
                "p_promo_sk": range(1, 5),
                "p_channel_email": list("YNNY"),
                "p_channel_event": list("YYNN"),
            }
        ),
    }


def keys_with_gaps(rng, keys, count):
    values = pd.Series(rng.choice([*keys], count), dtype="Int64")
    return values.mask(rng.random(count) < 0.04)


@pytest.fixture(scope="module")
def tables():
    """The dimensions and 3,000 facts."""
    rng = np.random.default_rng(11)
    of_dimensions = dimensions()
    facts = {
        column: keys_with_gaps(rng, of_dimensions[table][key], 3000)
        for table, (key, column) in KEYS.items()
    }
    facts |= {name: rng.integers(0, 100, 3000) for name in MEASURES}
    return {**of_dimensions, "store_sales": pd.DataFrame(facts)}


def star_domain():
    """Return the domain, in which each column of a dimension is a level of its key."""
    attributes = {}
    for table, frame in dimensions().items():
        key, column = KEYS[table]
        keys = frame[key].tolist()
        levels = {
            name: dict(zip(keys, frame[name].tolist(), strict=True))
            for name in frame
            if name != key
        }
        attributes[table] = ln.Categories(keys, levels=levels, reading={"column": column})
    measures = {name: ln.Measure(name, 0, 100) for name in MEASURES}
    return ln.Domain(**attributes, measures=measures)


@pytest.mark.parametrize("name", QUERIES)
def test_tpc_ds_group_by_is_answered_as_duckdb_does(tables, name):
    (statement,) = over_common_domain(
        read_statements(star_domain(), [QUERIES[name]], SqlSettings())
    )
    columns = {column: table for table, (_, column) in KEYS.items()}
    exact_numbers = ExactNumbers(tables["store_sales"].rename(columns=columns), None)
    frame = pd.DataFrame(answer_statement(statement, exact_numbers))
    frame = frame[[column.name for column in statement.columns]]
    answer = normalized_rows(frame)
    with duckdb.connect(":memory:") as database:
        for table, rows in tables.items():
            database.register(table, rows)
        expected = [
            tuple(map(normalize, row)) for row in database.execute(QUERIES[name]).fetchall()
        ]
    assert expected
    assert_rows_equal(answer, expected, is_ordered="ORDER BY" in QUERIES[name])
