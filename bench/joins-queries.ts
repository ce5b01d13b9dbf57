/**
 * Questions in the manner of TPC-H's, in words that Annals, DuckDB and SQLite all understand: `asOf` is the one clause that
 * only Annals has. Results are ordered, so that answers can be compared row by row.
 */
export interface JoinsQuery {
  readonly name: string;
  readonly sql: (asOf: string) => string;
}

export const joinsQueries: readonly JoinsQuery[] = [
  {
    name: 'Q1 sums by two flags',
    sql: (asOf) => `SELECT flag, status, SUM(quantity) AS quantity, SUM(price) AS price, SUM(price * (1 - discount)) AS net,
      SUM(price * (1 - discount) * (1 + tax)) AS charge, AVG(quantity) AS average_quantity, AVG(price) AS average_price,
      AVG(discount) AS average_discount, COUNT(*) AS lines
      FROM Lineitem ${asOf} WHERE shipped <= '1998-09-02' GROUP BY flag, status ORDER BY flag, status`,
  },
  {
    name: 'Q3 unshipped orders',
    sql: (asOf) => `SELECT l.orderkey AS orderkey, SUM(l.price * (1 - l.discount)) AS revenue, o.priority AS priority
      FROM Customer c JOIN Orders o ON c.customer = o.customer JOIN Lineitem l ON l.orderkey = o.orderkey ${asOf}
      WHERE c.segment = 'BUILDING' AND o.placed < '1995-03-15' AND l.shipped > '1995-03-15'
      GROUP BY l.orderkey, o.priority ORDER BY revenue DESC, orderkey LIMIT 10`,
  },
  {
    name: 'Q4 late orders by priority',
    sql: (asOf) => `SELECT priority, COUNT(*) AS orders FROM Orders ${asOf}
      WHERE placed >= '1993-07-01' AND placed < '1993-10-01'
      AND orderkey IN (SELECT orderkey FROM Lineitem WHERE committed < received) GROUP BY priority ORDER BY priority`,
  },
  {
    name: 'Q5 revenue within a nation',
    sql: (asOf) => `SELECT n.name AS nation, SUM(l.price * (1 - l.discount)) AS revenue
      FROM Customer c JOIN Orders o ON c.customer = o.customer JOIN Lineitem l ON l.orderkey = o.orderkey
      JOIN Supplier s ON l.supplier = s.supplier AND c.nation = s.nation JOIN Nation n ON s.nation = n.nation ${asOf}
      WHERE n.region = 'ASIA' AND o.placed >= '1994-01-01' AND o.placed < '1995-01-01'
      GROUP BY n.name ORDER BY revenue DESC, nation`,
  },
  {
    name: 'Q6 sum under filters',
    sql: (asOf) => `SELECT SUM(price * discount) AS revenue, COUNT(*) AS lines FROM Lineitem ${asOf}
      WHERE shipped >= '1994-01-01' AND shipped < '1995-01-01' AND discount BETWEEN 0.05 AND 0.07 AND quantity < 24`,
  },
  {
    name: 'Q10 returns by customer',
    sql: (
      asOf,
    ) => `SELECT c.customer AS customer, c.name AS name, SUM(l.price * (1 - l.discount)) AS revenue, c.balance AS balance, n.name AS nation
      FROM Customer c JOIN Orders o ON c.customer = o.customer JOIN Lineitem l ON l.orderkey = o.orderkey
      JOIN Nation n ON c.nation = n.nation ${asOf}
      WHERE o.placed >= '1993-10-01' AND o.placed < '1994-01-01' AND l.flag = 'R'
      GROUP BY c.customer, c.name, c.balance, n.name ORDER BY revenue DESC, customer LIMIT 20`,
  },
  {
    name: 'Q12 urgent orders by mode',
    sql: (
      asOf,
    ) => `SELECT l.mode AS mode, SUM(CASE o.priority WHEN '1-URGENT' THEN 1 WHEN '2-HIGH' THEN 1 ELSE 0 END) AS urgent, COUNT(*) AS orders
      FROM Orders o JOIN Lineitem l ON o.orderkey = l.orderkey ${asOf}
      WHERE l.mode IN ('MAIL', 'SHIP') AND l.committed < l.received AND l.shipped < l.committed
      AND l.received >= '1994-01-01' AND l.received < '1995-01-01' GROUP BY l.mode ORDER BY mode`,
  },
  {
    name: 'Q13 orders per customer (LEFT JOIN)',
    sql: (asOf) => `SELECT orders, COUNT(*) AS customers FROM
      (SELECT c.customer AS customer, COUNT(o.orderkey) AS orders FROM Customer c LEFT JOIN Orders o
       ON c.customer = o.customer AND o.clerk NOT LIKE '%7%' GROUP BY c.customer) per ${asOf}
      GROUP BY orders ORDER BY customers DESC, orders DESC`,
  },
  {
    name: 'G1 by part (many groups)',
    sql: (asOf) => `SELECT part, SUM(quantity) AS quantity, AVG(price) AS price, COUNT(*) AS lines FROM Lineitem ${asOf}
      GROUP BY part ORDER BY quantity DESC, part LIMIT 20`,
  },
  {
    name: 'G2 by order (a group of four)',
    sql: (asOf) => `SELECT orderkey, SUM(quantity) AS quantity FROM Lineitem ${asOf}
      GROUP BY orderkey HAVING SUM(quantity) > 300 ORDER BY quantity DESC, orderkey LIMIT 100`,
  },
  {
    name: 'G3 by two short texts',
    sql: (asOf) => `SELECT mode, instruction, COUNT(*) AS lines, MAX(price) AS price FROM Lineitem ${asOf}
      GROUP BY mode, instruction ORDER BY mode, instruction`,
  },
  {
    name: 'G4 by a text of many values',
    sql: (asOf) => `SELECT parcel, COUNT(*) AS lines, SUM(price) AS price FROM Lineitem ${asOf}
      GROUP BY parcel ORDER BY lines DESC, parcel LIMIT 20`,
  },
];
