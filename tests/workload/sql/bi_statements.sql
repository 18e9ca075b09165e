-- Statements of the kinds that BI tools and analysts write, over the table of test_bi.py.

-- quoted names of Tableau
SELECT DATE_TRUNC('month', "orders"."day") AS "Month of Day", "orders"."city" AS "city",
SUM("orders"."amount") AS "sum:amount:ok" FROM "public"."orders" "orders" GROUP BY 1, 2 HAVING
(COUNT(1) > 0);

-- source of Metabase
SELECT "source"."city" AS "city", COUNT(*) AS "count" FROM (SELECT "public"."orders"."city" AS
"city", "public"."orders"."channel" AS "channel" FROM "public"."orders" WHERE
"public"."orders"."channel" <> 'web') AS "source" GROUP BY "source"."city" ORDER BY
"source"."city" ASC;

-- time range of Superset
SELECT DATE_TRUNC('month', day) AS __timestamp, SUM(amount) AS "SUM(amount)" FROM orders WHERE day
>= TO_TIMESTAMP('2024-03-01 00:00:00', 'YYYY-MM-DD HH24:MI:SS') AND day < TO_DATE('2024-09-01',
'YYYY-MM-DD') GROUP BY DATE_TRUNC('month', day) ORDER BY "SUM(amount)" DESC LIMIT 10000;

-- zero for null of Looker
SELECT city AS "orders.city", COALESCE(SUM(amount), 0) AS "orders.total" FROM orders WHERE 1 = 1
GROUP BY 1 ORDER BY 2 DESC FETCH FIRST 500 ROWS ONLY;

-- rollup
SELECT city, family, product, SUM(amount) rev, COUNT(*) n FROM orders GROUP BY ROLLUP(city,
family, product);

-- grouping
SELECT family, GROUPING(family) AS g, GROUPING(city, family) AS h, COUNT(*) AS n FROM orders GROUP
BY CUBE(city, family);

-- format of dates
SELECT TO_CHAR(day, 'YYYY-MM') AS ym, COUNT(*) FROM orders GROUP BY 1 ORDER BY 1;

-- strftime
SELECT strftime(day, '%Y Q') || quarter(day) AS q, COUNT(*) AS n FROM orders GROUP BY q;

-- parts of dates
SELECT DATE_PART('quarter', day) AS q, EXTRACT(MONTH FROM day) AS m, COUNT(*) FROM orders GROUP BY
q, m;

-- conditional sums
SELECT city, SUM(CASE WHEN refund THEN 1 ELSE 0 END) AS refunds, SUM(CASE WHEN channel = 'web'
THEN amount END) AS web FROM orders GROUP BY city;

-- share
SELECT city, AVG(CASE WHEN refund THEN 1.0 ELSE 0.0 END) AS rate FROM orders GROUP BY city;

-- share of a condition
SELECT city, AVG((channel = 'web')::int) AS rate, AVG(refund::int) AS refunds FROM orders GROUP BY
city;

-- net amount
SELECT city, SUM(CASE WHEN refund THEN -amount ELSE amount END) AS net FROM orders GROUP BY city;

-- multiples
SELECT city, SUM(amount * 0.19) AS tax, SUM(amount / 2 + 1) AS half, AVG(2 * amount - 3) AS twice
FROM orders GROUP BY city;

-- several results
SELECT city, SUM(CASE channel WHEN 'web' THEN 3 WHEN 'app' THEN amount ELSE 0 END) AS points,
AVG(CASE WHEN refund AND channel = 'web' THEN 1 WHEN trial = 'A' THEN amount END) AS mixed FROM
orders GROUP BY city;

-- ratio of people
SELECT city, SUM(amount)/NULLIF(COUNT(DISTINCT customer),0) AS per_customer FROM orders GROUP BY
city;

-- people
SELECT city, APPROX_COUNT_DISTINCT(customer) AS n FROM orders GROUP BY city;

-- subquery of groups
SELECT city, n FROM (SELECT city, COUNT(*) AS n FROM orders GROUP BY city) t;

-- star of a subquery
SELECT t.*, n * 2 AS twice FROM (SELECT city, COUNT(*) AS n FROM orders GROUP BY city) t WHERE n >
0;

-- share of the total
SELECT city, SUM(amount) AS rev, ROUND(SUM(amount) * 100.0 / SUM(SUM(amount)) OVER (), 2) AS pct
FROM orders GROUP BY city;

-- share within a group
SELECT city, channel, COUNT(*) * 1.0 / SUM(COUNT(*)) OVER (PARTITION BY city) AS share FROM orders
WHERE channel IS NOT NULL GROUP BY city, channel HAVING COUNT(*) > 0;

-- named window
SELECT city, RANK() OVER w AS r FROM orders GROUP BY city WINDOW w AS (ORDER BY COUNT(*) DESC);

-- rank
SELECT city, COUNT(*) AS n, RANK() OVER (ORDER BY COUNT(*) DESC) AS r FROM orders GROUP BY city
HAVING COUNT(*) > 0 QUALIFY r <= 3;

-- running total
WITH monthly AS (SELECT DATE_TRUNC('month', day) AS m, SUM(amount) AS rev FROM orders GROUP BY 1)
SELECT m, rev, rev - LAG(rev) OVER (ORDER BY m) AS change, SUM(rev) OVER (ORDER BY m) AS running
FROM monthly ORDER BY m;

-- two periods
WITH a AS (SELECT city, SUM(amount) AS rev FROM orders WHERE day < '2024-07-01' GROUP BY city), b
AS (SELECT city, SUM(amount) AS rev FROM orders WHERE day >= '2024-07-01' GROUP BY city) SELECT
a.city, b.rev - a.rev AS growth, b.rev / NULLIF(a.rev, 0) - 1 AS pct FROM a JOIN b ON a.city =
b.city WHERE a.rev > 1;

-- layers of rows
WITH web AS (SELECT city AS c, amount AS a, DATE_TRUNC('quarter', day) AS q FROM orders WHERE
channel = 'web'), paid AS (SELECT * FROM web WHERE q >= '2024-04-01') SELECT q, c, SUM(a) AS rev
FROM paid p GROUP BY q, p.c ORDER BY q;

-- mean of groups
SELECT AVG(n) AS mean, MAX(n) AS most FROM (SELECT city, COUNT(*) AS n FROM orders WHERE city <>
'Ulm' GROUP BY city) q;

-- a name twice
WITH orders AS (SELECT * FROM orders WHERE refund) SELECT city, COUNT(*) AS n FROM orders GROUP BY
city;

-- scalar subquery
SELECT city, 100.0 * COUNT(*) / (SELECT COUNT(*) FROM orders) AS share FROM orders GROUP BY city;

-- union
SELECT 'all' AS city, COUNT(*) AS n FROM orders UNION ALL SELECT city, COUNT(*) FROM orders GROUP
BY city;

-- null as a value
SELECT COALESCE(channel, 'none') AS ch, COUNT(*) AS n FROM orders GROUP BY 1;

-- not null
SELECT channel, COUNT(*) FROM orders WHERE channel IS NOT NULL GROUP BY channel;

-- or of attributes
SELECT city, COUNT(*) AS n, SUM(amount) AS rev, AVG(amount) AS mean FROM orders WHERE city =
'Bern' OR channel = 'web' GROUP BY city;

-- not of and
SELECT product, COUNT(*) AS n FROM orders WHERE NOT (city = 'Bern' AND channel = 'web') GROUP BY
product;

-- or in a filter
SELECT COUNT(*) FILTER (WHERE refund OR channel = 'app') AS n, SUM(CASE WHEN refund OR trial = 'A'
THEN amount ELSE 0 END) AS s FROM orders;

-- else
SELECT CASE WHEN channel = 'web' THEN 'online' ELSE 'shop' END AS kind, SUM(amount) FROM orders
GROUP BY 1;

-- last days
SELECT city, COUNT(*) FROM orders WHERE day >= CURRENT_DATE - INTERVAL '30 days' GROUP BY city;

-- this quarter
SELECT COUNT(*) AS n, CURRENT_DATE AS as_of FROM orders WHERE day >= DATE_TRUNC('quarter', NOW());

-- difference
SELECT city, SUM(CASE WHEN trial='B' THEN amount ELSE 0 END) - SUM(CASE WHEN trial='A' THEN amount
ELSE 0 END) AS diff FROM orders GROUP BY city;

-- distinct
SELECT DISTINCT city FROM orders ORDER BY city;

-- distinct counts
SELECT DISTINCT city, COUNT(*) AS n FROM orders GROUP BY city;

-- edges
SELECT city, COUNT(*) AS n FROM orders WHERE basket >= 50 GROUP BY city;

-- buckets
SELECT WIDTH_BUCKET(amount, 0, 50, 2) AS b, COUNT(*) FROM orders GROUP BY 1;

-- casts
SELECT city, CAST(COUNT(*) AS INTEGER) AS n, COUNT(*)::text AS t, SUM(amount)::bigint AS s,
AVG(amount::numeric) AS m FROM orders WHERE city IN ('Bern', 'Lyon') GROUP BY city;

-- order by what is not shown
SELECT city FROM orders GROUP BY city ORDER BY COUNT(*) DESC, city LIMIT 2 OFFSET 1;

-- case of an aggregate
SELECT city, CASE WHEN SUM(amount) > 5000 THEN 'big' WHEN SUM(amount) > 1 THEN 'small' END AS size
FROM orders GROUP BY city;

-- alias in an expression
SELECT city, COUNT(*) AS n, n * 10 AS ten FROM orders GROUP BY city HAVING n > 50 ORDER BY ten;

-- cells of two columns
SELECT city || '-' || channel AS cc, COUNT(*) AS n, AVG(amount) AS m FROM orders WHERE channel IS
NOT NULL GROUP BY 1 HAVING COUNT(*) > 0;

-- case of two columns
SELECT CASE WHEN city IN ('Bern', 'Oslo') AND channel = 'web' THEN 'core' ELSE 'rest' END AS part,
COUNT(*) AS n, SUM(amount) AS s FROM orders GROUP BY part ORDER BY n;

-- distinct people
SELECT COUNT(*) AS n FROM (SELECT DISTINCT customer FROM orders) t;

-- distinct people of a group
SELECT c, COUNT(*) AS n FROM (SELECT DISTINCT customer, city AS c FROM orders) t GROUP BY c;

-- an alias like a column
SELECT UPPER(city) AS city, COUNT(*) AS n FROM orders GROUP BY city;

-- function of a group
SELECT UPPER(city) AS c, city || '!' AS d, COUNT(*) AS n FROM orders GROUP BY city;

-- histogram
SELECT LEAST(FLOOR(basket / 25), 3) * 25 AS bucket, COUNT(*) AS n FROM orders WHERE
LEAST(FLOOR((basket + 25) / 50), 2) > 0 GROUP BY 1;

-- first rows
SELECT TOP 2 `city`, SUM(`amount`) AS `rev` FROM `orders` GROUP BY `city` ORDER BY `rev` DESC;

-- names of months
SELECT MONTHNAME(day) AS m, LAST_DAY(day) AS e, REPLACE(city, 'o', '0') AS c, COUNT(*) AS n FROM
orders GROUP BY 1, 2, 3;

-- rows of a customer
SELECT AVG(n) AS mean, SUM(n) AS total, COUNT(*) AS customers FROM (SELECT customer, COUNT(*) AS n
FROM orders WHERE channel = 'web' GROUP BY customer) q;

-- rows of a customer by group
WITH q AS (SELECT o.customer, city, COUNT(*) AS n FROM orders o GROUP BY 1, 2) SELECT city,
ROUND(AVG(n), 2) AS mean, COUNT(customer) AS customers FROM q GROUP BY city;

-- top groups of Superset
SELECT DATE_TRUNC('quarter', day) AS __timestamp, city AS city, SUM(amount) AS "SUM(amount)" FROM
orders JOIN (SELECT city AS city__, COUNT(*) AS mme_inner__ FROM orders GROUP BY city ORDER BY
mme_inner__ DESC LIMIT 2) AS anon_1 ON city = city__ GROUP BY DATE_TRUNC('quarter', day), city;

-- top groups in a condition
SELECT DATE_TRUNC('month', day) AS m, SUM(amount) AS rev, AVG(amount) AS mean FROM orders WHERE
city IN (SELECT city FROM orders GROUP BY city ORDER BY SUM(amount) DESC LIMIT 2) GROUP BY 1;

-- top groups and the others
WITH top AS (SELECT city FROM orders GROUP BY 1 ORDER BY SUM(amount) DESC LIMIT 2) SELECT CASE
WHEN city IN (SELECT city FROM top) THEN city ELSE 'Other' END AS c, COUNT(*) AS n FROM orders
GROUP BY 1;

-- groups above a number
SELECT COUNT(*) AS n FROM orders WHERE (city, refund) IN (SELECT city, refund FROM orders GROUP BY
1, 2 HAVING COUNT(*) > 30);

-- tuples
SELECT COUNT(*) AS n FROM orders WHERE (city, trial) IN (('Bern', 'A'), ('Lyon', 'B'));

-- dates of a query
WITH params AS (SELECT DATE '2024-03-01' AS first_day, DATE '2024-09-01' AS last_day, 'web' AS ch)
SELECT city, COUNT(*) AS n FROM orders CROSS JOIN params WHERE day >= first_day AND day <
params.last_day AND channel = ch GROUP BY city;

-- constants in every clause
WITH p AS (SELECT 2 AS least, 'all' AS scope) SELECT city, scope, COUNT(*) AS n FROM p P CROSS JOIN
orders GROUP BY scope, city, least HAVING COUNT(*) > least ORDER BY p.least, scope, n DESC;

-- date of a scalar query
WITH p AS (SELECT DATE '2024-07-01' AS d) SELECT city, COUNT(*) AS n FROM orders WHERE day >=
(SELECT d FROM p) GROUP BY city;

-- layers of dbt
with raw as (select * from orders), stg as (select customer as cust, day as dt, amount as amt,
city from raw), late as (select * from stg where dt >= '2024-04-01') select city,
date_trunc('quarter', dt) as q, sum(amt) as rev, count(distinct cust) as people from late group by
1, 2;

-- names of columns
WITH t (c, n) AS (SELECT city, COUNT(*) FROM orders GROUP BY city) SELECT u.town, u.k FROM (SELECT
c, n FROM t) AS u(town, k);

-- months without gaps
SELECT d.m, COALESCE(s.n, 0) AS n FROM generate_series(DATE '2024-01-01', DATE '2024-06-01',
INTERVAL '1 month') AS d(m) LEFT JOIN (SELECT date_trunc('month', day) AS m, COUNT(*) AS n FROM
orders GROUP BY 1) s ON s.m = d.m ORDER BY 1;

-- labels
WITH labels(city, label) AS (VALUES ('Bern', 'BE'), ('Oslo', 'OS')) SELECT l.label, r.n FROM
(SELECT city, COUNT(*) AS n FROM orders GROUP BY 1) r JOIN labels l USING (city);

-- value of a group
SELECT product, ANY_VALUE(family) AS f, MAX(family) AS g, COUNT(*) AS n FROM orders GROUP BY product;

-- order of ranges
SELECT CASE WHEN basket < 25 THEN 'low' WHEN basket < 75 THEN 'middle' ELSE 'high' END AS bucket,
COUNT(*) AS n FROM orders GROUP BY 1 ORDER BY MIN(basket);

-- order of months
SELECT STRFTIME(day, '%b') AS mon, COUNT(*) AS n FROM orders GROUP BY 1 ORDER BY MAX(day) DESC;

-- alias in a condition
SELECT CASE WHEN channel = 'web' THEN 'online' ELSE 'shop' END AS kind, COUNT(*) AS n FROM orders
WHERE kind = 'online' GROUP BY kind;

-- truth values of groups
SELECT CASE WHEN r THEN 'refund' ELSE 'sale' END AS k, n FROM (SELECT refund AS r, COUNT(*) AS n
FROM orders GROUP BY 1) t WHERE NOT r;

-- case of branches
SELECT CASE WHEN channel = 'web' AND trial = 'A' THEN 'core' WHEN channel = 'web' THEN 'web' ELSE
'rest' END AS k, SUM(amount) AS rev, COUNT(*) AS n FROM orders GROUP BY 1;

-- difference of means
SELECT city, AVG(amount) FILTER (WHERE trial = 'B') - AVG(CASE WHEN trial = 'A' THEN amount END)
AS lift FROM orders WHERE city <> 'Ulm' GROUP BY city;

-- month over month
WITH m AS (SELECT DATE_TRUNC('month', day) AS m, SUM(amount) AS rev FROM orders GROUP BY 1) SELECT
m, LAG(rev) OVER (ORDER BY m) AS prev, (rev - LAG(rev) OVER (ORDER BY m)) / NULLIF(LAG(rev) OVER
(ORDER BY m), 0) AS pct FROM m ORDER BY m;

-- month over month of each city
SELECT city, q, n - LAG(n) OVER (PARTITION BY city ORDER BY q) AS diff, n FROM (SELECT city,
QUARTER(day) AS q, COUNT(*) AS n FROM orders GROUP BY ALL) t WHERE city <> 'Ulm';

-- year to date
SELECT DATE_TRUNC('month', day) AS m, SUM(SUM(amount)) OVER (PARTITION BY EXTRACT(YEAR FROM
DATE_TRUNC('month', day)) ORDER BY DATE_TRUNC('month', day)) AS ytd FROM orders GROUP BY 1;

-- chain of columns
WITH k AS (SELECT city, COUNT(*) AS orders, SUM(amount) AS rev FROM orders WHERE city <> 'Ulm'
GROUP BY city), t AS (SELECT *, rev / orders AS aov FROM k) SELECT city, aov, aov / MAX(aov) OVER
() AS rel, orders // 10 AS tens FROM t ORDER BY city;

-- parts of texts
SELECT REGEXP_EXTRACT(city, '^[A-Z]') AS initial, COUNT(*) AS n FROM orders WHERE city SIMILAR TO
'(Bern|Lyon)' GROUP BY 1;
