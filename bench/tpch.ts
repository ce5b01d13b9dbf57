/**
 * The eight tables of TPC-H under their own names, made from row numbers alone, and its 22 questions as they are written
 * (Q15 in its WITH form). Ratios and value sets are those of the benchmark, the texts are our own, so that each question
 * finds some rows. Decimals are doubles. `lines` is how many rows lineitem has; the benchmark's scale factor 1 has 6,000,000.
 */
import { scramble } from './workload.ts';
import type { MadeSizes, MadeTable } from './joins-data.ts';

export function tpchSizes(lines: number): MadeSizes {
  const of = (share: number, least: number): number => Math.max(least, Math.round(lines * share));
  return {
    lines,
    orders: of(1 / 4, 10),
    customers: of(1 / 40, 10),
    parts: of(1 / 30, 10),
    suppliers: of(1 / 600, 100),
  };
}

const day = 86_400_000;
const firstDay = Date.UTC(1992, 0, 1);
const dates = Array.from({ length: 2_700 }, (_, days) => new Date(firstDay + days * day).toISOString().slice(0, 10));
const pick = (i: number, column: number, below: number): number => scramble(scramble(i) ^ Math.imul(column, 0x9e37_79b1)) % below;
const of = <T>(values: readonly T[], i: number, column: number): T => values[pick(i, column, values.length)]!;
const numbered = (name: string, i: number): string => `${name}#${String(i).padStart(9, '0')}`;

const regions = ['AFRICA', 'AMERICA', 'ASIA', 'EUROPE', 'MIDDLE EAST'];
const nations: readonly (readonly [string, number])[] = [
  ['ALGERIA', 0],
  ['ARGENTINA', 1],
  ['BRAZIL', 1],
  ['CANADA', 1],
  ['EGYPT', 4],
  ['ETHIOPIA', 0],
  ['FRANCE', 3],
  ['GERMANY', 3],
  ['INDIA', 2],
  ['INDONESIA', 2],
  ['IRAN', 4],
  ['IRAQ', 4],
  ['JAPAN', 2],
  ['JORDAN', 4],
  ['KENYA', 0],
  ['MOROCCO', 0],
  ['MOZAMBIQUE', 0],
  ['PERU', 1],
  ['CHINA', 2],
  ['ROMANIA', 3],
  ['SAUDI ARABIA', 4],
  ['VIETNAM', 2],
  ['RUSSIA', 3],
  ['UNITED KINGDOM', 3],
  ['UNITED STATES', 1],
];
const segments = ['AUTOMOBILE', 'BUILDING', 'FURNITURE', 'HOUSEHOLD', 'MACHINERY'];
const priorities = ['1-URGENT', '2-HIGH', '3-MEDIUM', '4-NOT SPECIFIED', '5-LOW'];
const modes = ['AIR', 'AIR REG', 'FOB', 'MAIL', 'RAIL', 'SHIP', 'TRUCK'];
const instructions = ['COLLECT COD', 'DELIVER IN PERSON', 'NONE', 'TAKE BACK RETURN'];
const colours = ['almond', 'azure', 'beige', 'forest', 'green', 'ivory', 'lemon', 'navy', 'olive', 'plum', 'red', 'tan'];
const kinds = ['STANDARD', 'SMALL', 'MEDIUM', 'LARGE', 'ECONOMY', 'PROMO'];
const finishes = ['ANODIZED', 'BURNISHED', 'PLATED', 'POLISHED', 'BRUSHED'];
const metals = ['TIN', 'NICKEL', 'BRASS', 'STEEL', 'COPPER'];
const boxes = ['SM', 'LG', 'MED', 'JUMBO', 'WRAP'];
const shapes = ['CASE', 'BOX', 'BAG', 'JAR', 'PKG', 'PACK', 'CAN', 'DRUM'];
const words = ['quick', 'final', 'special', 'packages', 'requests', 'deposits', 'ironic', 'Customer', 'Complaints', 'pending'];

const phrase = (i: number, column: number): string => [0, 1, 2, 3, 4].map((n) => of(words, i, column + n)).join(' ');
/** Four suppliers of a part, as the benchmark spreads them. */
const supplierOf = (part: number, n: number, { suppliers }: MadeSizes): number =>
  1 + ((part + n * (Math.floor(suppliers / 4) + Math.floor((part - 1) / suppliers))) % suppliers);
const customerOf = (i: number, { customers }: MadeSizes): number => {
  const customer = pick(i, 1, customers);
  return 1 + (customer % 3 === 0 ? (customer + 1) % customers : customer);
};
const placedDay = (i: number): number => pick(i, 2, 2_400);
const retail = (part: number): number => (90_000 + ((Math.floor(part / 10) % 20_001) + 100 * (part % 1_000))) / 100;

export const tpchTables: readonly MadeTable[] = [
  {
    name: 'region',
    columns: { r_regionkey: 'integer', r_name: 'string', r_comment: 'string' },
    key: null,
    rows: () => 5,
    row: (i) => [i, regions[i]!, phrase(i, 3)],
  },
  {
    name: 'nation',
    columns: { n_nationkey: 'integer', n_name: 'string', n_regionkey: 'integer', n_comment: 'string' },
    key: null,
    rows: () => 25,
    row: (i) => [i, nations[i]![0], nations[i]![1], phrase(i, 8)],
  },
  {
    name: 'supplier',
    columns: {
      s_suppkey: 'integer',
      s_name: 'string',
      s_address: 'string',
      s_nationkey: 'integer',
      s_phone: 'string',
      s_acctbal: 'number',
      s_comment: 'string',
    },
    key: null,
    rows: ({ suppliers }) => suppliers,
    row: (i) => [
      i + 1,
      numbered('Supplier', i + 1),
      `at ${i}`,
      pick(i, 13, 25),
      `${10 + pick(i, 13, 25)}-${pick(i, 14, 900)}`,
      (pick(i, 15, 1_100_000) - 100_000) / 100,
      phrase(i, 16),
    ],
  },
  {
    name: 'part',
    columns: {
      p_partkey: 'integer',
      p_name: 'string',
      p_mfgr: 'string',
      p_brand: 'string',
      p_type: 'string',
      p_size: 'integer',
      p_container: 'string',
      p_retailprice: 'number',
      p_comment: 'string',
    },
    key: null,
    rows: ({ parts }) => parts,
    row: (i) => {
      const maker = 1 + pick(i, 21, 5);
      return [
        i + 1,
        `${of(colours, i, 22)} ${of(colours, i, 23)} ${of(colours, i, 24)}`,
        `Manufacturer#${maker}`,
        `Brand#${maker}${1 + pick(i, 25, 5)}`,
        `${of(kinds, i, 26)} ${of(finishes, i, 27)} ${of(metals, i, 28)}`,
        1 + pick(i, 29, 50),
        `${of(boxes, i, 30)} ${of(shapes, i, 31)}`,
        retail(i + 1),
        phrase(i, 32),
      ];
    },
  },
  {
    name: 'partsupp',
    columns: {
      ps_partkey: 'integer',
      ps_suppkey: 'integer',
      ps_availqty: 'integer',
      ps_supplycost: 'number',
      ps_comment: 'string',
    },
    key: null,
    rows: ({ parts }) => parts * 4,
    row: (i, sizes) => {
      const part = 1 + Math.floor(i / 4);
      return [part, supplierOf(part, i % 4, sizes), 1 + pick(i, 40, 9_999), (100 + pick(i, 41, 99_900)) / 100, phrase(i, 42)];
    },
  },
  {
    name: 'customer',
    columns: {
      c_custkey: 'integer',
      c_name: 'string',
      c_address: 'string',
      c_nationkey: 'integer',
      c_phone: 'string',
      c_acctbal: 'number',
      c_mktsegment: 'string',
      c_comment: 'string',
    },
    key: null,
    rows: ({ customers }) => customers,
    row: (i) => {
      const nation = pick(i, 50, 25);
      return [
        i + 1,
        numbered('Customer', i + 1),
        `at ${i}`,
        nation,
        `${10 + nation}-${100 + pick(i, 51, 900)}-${100 + pick(i, 52, 900)}-${1_000 + pick(i, 53, 9_000)}`,
        (pick(i, 54, 1_100_000) - 100_000) / 100,
        of(segments, i, 55),
        phrase(i, 56),
      ];
    },
  },
  {
    name: 'orders',
    columns: {
      o_orderkey: 'integer',
      o_custkey: 'integer',
      o_orderstatus: 'string',
      o_totalprice: 'number',
      o_orderdate: 'timestamp',
      o_orderpriority: 'string',
      o_clerk: 'string',
      o_shippriority: 'integer',
      o_comment: 'string',
    },
    key: null,
    rows: ({ orders }) => orders,
    row: (i, sizes) => [
      i + 1,
      customerOf(i, sizes),
      'FOP'[pick(i, 60, 3)]!,
      pick(i, 61, 40_000_000) / 100,
      dates[placedDay(i)]!,
      of(priorities, i, 62),
      numbered('Clerk', pick(i, 63, 1_000)),
      0,
      phrase(i, 64),
    ],
  },
  {
    name: 'lineitem',
    columns: {
      l_orderkey: 'integer',
      l_partkey: 'integer',
      l_suppkey: 'integer',
      l_linenumber: 'integer',
      l_quantity: 'number',
      l_extendedprice: 'number',
      l_discount: 'number',
      l_tax: 'number',
      l_returnflag: 'string',
      l_linestatus: 'string',
      l_shipdate: 'timestamp',
      l_commitdate: 'timestamp',
      l_receiptdate: 'timestamp',
      l_shipinstruct: 'string',
      l_shipmode: 'string',
      l_comment: 'string',
    },
    key: null,
    rows: ({ lines }) => lines,
    row: (i, sizes) => {
      // One to seven lines an order, by where the boundaries between orders fall.
      const order = Math.min(sizes.orders - 1, Math.floor((i * sizes.orders) / sizes.lines + (i % 7 === 3 ? 0.4 : 0)));
      const placed = placedDay(order);
      const part = 1 + pick(i, 70, sizes.parts);
      const quantity = 1 + pick(i, 71, 50);
      const shipped = placed + 1 + pick(i, 72, 121);
      const received = shipped + 1 + pick(i, 73, 30);
      return [
        order + 1,
        part,
        supplierOf(part, pick(i, 74, 4), sizes),
        1 + (i % 7),
        quantity,
        Math.round(quantity * retail(part) * 100) / 100,
        pick(i, 75, 11) / 100,
        pick(i, 76, 9) / 100,
        received <= 1_260 ? 'AR'[pick(i, 77, 2)]! : 'N',
        shipped > 1_260 ? 'O' : 'F',
        dates[shipped]!,
        dates[placed + 30 + pick(i, 78, 61)]!,
        dates[received]!,
        of(instructions, i, 79),
        of(modes, i, 80),
        phrase(i, 81),
      ];
    },
  },
];

/** The questions by number, 1 first. */
export const tpchQueries: readonly string[] = [
  `select l_returnflag, l_linestatus, sum(l_quantity) as sum_qty, sum(l_extendedprice) as sum_base_price,
    sum(l_extendedprice * (1 - l_discount)) as sum_disc_price, sum(l_extendedprice * (1 - l_discount) * (1 + l_tax)) as sum_charge,
    avg(l_quantity) as avg_qty, avg(l_extendedprice) as avg_price, avg(l_discount) as avg_disc, count(*) as count_order
  from lineitem where l_shipdate <= date '1998-12-01' - interval '90' day
  group by l_returnflag, l_linestatus order by l_returnflag, l_linestatus`,
  `select s_acctbal, s_name, n_name, p_partkey, p_mfgr, s_address, s_phone, s_comment
  from part, supplier, partsupp, nation, region
  where p_partkey = ps_partkey and s_suppkey = ps_suppkey and p_size = 15 and p_type like '%BRASS'
    and s_nationkey = n_nationkey and n_regionkey = r_regionkey and r_name = 'EUROPE'
    and ps_supplycost = (select min(ps_supplycost) from partsupp, supplier, nation, region
      where p_partkey = ps_partkey and s_suppkey = ps_suppkey and s_nationkey = n_nationkey
        and n_regionkey = r_regionkey and r_name = 'EUROPE')
  order by s_acctbal desc, n_name, s_name, p_partkey limit 100`,
  `select l_orderkey, sum(l_extendedprice * (1 - l_discount)) as revenue, o_orderdate, o_shippriority
  from customer, orders, lineitem
  where c_mktsegment = 'BUILDING' and c_custkey = o_custkey and l_orderkey = o_orderkey
    and o_orderdate < date '1995-03-15' and l_shipdate > date '1995-03-15'
  group by l_orderkey, o_orderdate, o_shippriority order by revenue desc, o_orderdate limit 10`,
  `select o_orderpriority, count(*) as order_count from orders
  where o_orderdate >= date '1993-07-01' and o_orderdate < date '1993-07-01' + interval '3' month
    and exists (select * from lineitem where l_orderkey = o_orderkey and l_commitdate < l_receiptdate)
  group by o_orderpriority order by o_orderpriority`,
  `select n_name, sum(l_extendedprice * (1 - l_discount)) as revenue
  from customer, orders, lineitem, supplier, nation, region
  where c_custkey = o_custkey and l_orderkey = o_orderkey and l_suppkey = s_suppkey and c_nationkey = s_nationkey
    and s_nationkey = n_nationkey and n_regionkey = r_regionkey and r_name = 'ASIA'
    and o_orderdate >= date '1994-01-01' and o_orderdate < date '1994-01-01' + interval '1' year
  group by n_name order by revenue desc`,
  `select sum(l_extendedprice * l_discount) as revenue from lineitem
  where l_shipdate >= date '1994-01-01' and l_shipdate < date '1994-01-01' + interval '1' year
    and l_discount between 0.06 - 0.01 and 0.06 + 0.01 and l_quantity < 24`,
  `select supp_nation, cust_nation, l_year, sum(volume) as revenue
  from (select n1.n_name as supp_nation, n2.n_name as cust_nation, extract(year from l_shipdate) as l_year,
      l_extendedprice * (1 - l_discount) as volume
    from supplier, lineitem, orders, customer, nation n1, nation n2
    where s_suppkey = l_suppkey and o_orderkey = l_orderkey and c_custkey = o_custkey
      and s_nationkey = n1.n_nationkey and c_nationkey = n2.n_nationkey
      and ((n1.n_name = 'FRANCE' and n2.n_name = 'GERMANY') or (n1.n_name = 'GERMANY' and n2.n_name = 'FRANCE'))
      and l_shipdate between date '1995-01-01' and date '1996-12-31') as shipping
  group by supp_nation, cust_nation, l_year order by supp_nation, cust_nation, l_year`,
  `select o_year, sum(case when nation = 'BRAZIL' then volume else 0 end) / sum(volume) as mkt_share
  from (select extract(year from o_orderdate) as o_year, l_extendedprice * (1 - l_discount) as volume, n2.n_name as nation
    from part, supplier, lineitem, orders, customer, nation n1, nation n2, region
    where p_partkey = l_partkey and s_suppkey = l_suppkey and l_orderkey = o_orderkey and o_custkey = c_custkey
      and c_nationkey = n1.n_nationkey and n1.n_regionkey = r_regionkey and r_name = 'AMERICA'
      and s_nationkey = n2.n_nationkey and o_orderdate between date '1995-01-01' and date '1996-12-31'
      and p_type = 'ECONOMY ANODIZED STEEL') as all_nations
  group by o_year order by o_year`,
  `select nation, o_year, sum(amount) as sum_profit
  from (select n_name as nation, extract(year from o_orderdate) as o_year,
      l_extendedprice * (1 - l_discount) - ps_supplycost * l_quantity as amount
    from part, supplier, lineitem, partsupp, orders, nation
    where s_suppkey = l_suppkey and ps_suppkey = l_suppkey and ps_partkey = l_partkey and p_partkey = l_partkey
      and o_orderkey = l_orderkey and s_nationkey = n_nationkey and p_name like '%green%') as profit
  group by nation, o_year order by nation, o_year desc`,
  `select c_custkey, c_name, sum(l_extendedprice * (1 - l_discount)) as revenue, c_acctbal, n_name, c_address, c_phone, c_comment
  from customer, orders, lineitem, nation
  where c_custkey = o_custkey and l_orderkey = o_orderkey and o_orderdate >= date '1993-10-01'
    and o_orderdate < date '1993-10-01' + interval '3' month and l_returnflag = 'R' and c_nationkey = n_nationkey
  group by c_custkey, c_name, c_acctbal, c_phone, n_name, c_address, c_comment order by revenue desc limit 20`,
  `select ps_partkey, sum(ps_supplycost * ps_availqty) as value from partsupp, supplier, nation
  where ps_suppkey = s_suppkey and s_nationkey = n_nationkey and n_name = 'GERMANY'
  group by ps_partkey having sum(ps_supplycost * ps_availqty) >
    (select sum(ps_supplycost * ps_availqty) * 0.0001 from partsupp, supplier, nation
      where ps_suppkey = s_suppkey and s_nationkey = n_nationkey and n_name = 'GERMANY')
  order by value desc`,
  `select l_shipmode, sum(case when o_orderpriority = '1-URGENT' or o_orderpriority = '2-HIGH' then 1 else 0 end) as high_line_count,
    sum(case when o_orderpriority <> '1-URGENT' and o_orderpriority <> '2-HIGH' then 1 else 0 end) as low_line_count
  from orders, lineitem
  where o_orderkey = l_orderkey and l_shipmode in ('MAIL', 'SHIP') and l_commitdate < l_receiptdate and l_shipdate < l_commitdate
    and l_receiptdate >= date '1994-01-01' and l_receiptdate < date '1994-01-01' + interval '1' year
  group by l_shipmode order by l_shipmode`,
  `select c_count, count(*) as custdist
  from (select c_custkey, count(o_orderkey) from customer left outer join orders
    on c_custkey = o_custkey and o_comment not like '%special%requests%' group by c_custkey) as c_orders (c_custkey, c_count)
  group by c_count order by custdist desc, c_count desc`,
  `select 100.00 * sum(case when p_type like 'PROMO%' then l_extendedprice * (1 - l_discount) else 0 end)
    / sum(l_extendedprice * (1 - l_discount)) as promo_revenue
  from lineitem, part
  where l_partkey = p_partkey and l_shipdate >= date '1995-09-01' and l_shipdate < date '1995-09-01' + interval '1' month`,
  `with revenue (supplier_no, total_revenue) as
    (select l_suppkey, sum(l_extendedprice * (1 - l_discount)) from lineitem
     where l_shipdate >= date '1996-01-01' and l_shipdate < date '1996-01-01' + interval '3' month group by l_suppkey)
  select s_suppkey, s_name, s_address, s_phone, total_revenue from supplier, revenue
  where s_suppkey = supplier_no and total_revenue = (select max(total_revenue) from revenue) order by s_suppkey`,
  `select p_brand, p_type, p_size, count(distinct ps_suppkey) as supplier_cnt from partsupp, part
  where p_partkey = ps_partkey and p_brand <> 'Brand#45' and p_type not like 'MEDIUM POLISHED%'
    and p_size in (49, 14, 23, 45, 19, 3, 36, 9)
    and ps_suppkey not in (select s_suppkey from supplier where s_comment like '%Customer%Complaints%')
  group by p_brand, p_type, p_size order by supplier_cnt desc, p_brand, p_type, p_size`,
  `select sum(l_extendedprice) / 7.0 as avg_yearly from lineitem, part
  where p_partkey = l_partkey and p_brand = 'Brand#23' and p_container = 'MED BOX'
    and l_quantity < (select 0.2 * avg(l_quantity) from lineitem where l_partkey = p_partkey)`,
  `select c_name, c_custkey, o_orderkey, o_orderdate, o_totalprice, sum(l_quantity) from customer, orders, lineitem
  where o_orderkey in (select l_orderkey from lineitem group by l_orderkey having sum(l_quantity) > 200)
    and c_custkey = o_custkey and o_orderkey = l_orderkey
  group by c_name, c_custkey, o_orderkey, o_orderdate, o_totalprice order by o_totalprice desc, o_orderdate limit 100`,
  `select sum(l_extendedprice * (1 - l_discount)) as revenue from lineitem, part
  where (p_partkey = l_partkey and p_brand = 'Brand#12' and p_container in ('SM CASE', 'SM BOX', 'SM PACK', 'SM PKG')
      and l_quantity >= 1 and l_quantity <= 1 + 10 and p_size between 1 and 5
      and l_shipmode in ('AIR', 'AIR REG') and l_shipinstruct = 'DELIVER IN PERSON')
    or (p_partkey = l_partkey and p_brand = 'Brand#23' and p_container in ('MED BAG', 'MED BOX', 'MED PKG', 'MED PACK')
      and l_quantity >= 10 and l_quantity <= 10 + 10 and p_size between 1 and 10
      and l_shipmode in ('AIR', 'AIR REG') and l_shipinstruct = 'DELIVER IN PERSON')
    or (p_partkey = l_partkey and p_brand = 'Brand#34' and p_container in ('LG CASE', 'LG BOX', 'LG PACK', 'LG PKG')
      and l_quantity >= 20 and l_quantity <= 20 + 10 and p_size between 1 and 15
      and l_shipmode in ('AIR', 'AIR REG') and l_shipinstruct = 'DELIVER IN PERSON')`,
  `select s_name, s_address from supplier, nation
  where s_suppkey in (select ps_suppkey from partsupp
      where ps_partkey in (select p_partkey from part where p_name like 'forest%')
        and ps_availqty > (select 0.5 * sum(l_quantity) from lineitem
          where l_partkey = ps_partkey and l_suppkey = ps_suppkey
            and l_shipdate >= date '1994-01-01' and l_shipdate < date '1994-01-01' + interval '1' year))
    and s_nationkey = n_nationkey and n_name = 'CANADA' order by s_name`,
  `select s_name, count(*) as numwait from supplier, lineitem l1, orders, nation
  where s_suppkey = l1.l_suppkey and o_orderkey = l1.l_orderkey and o_orderstatus = 'F' and l1.l_receiptdate > l1.l_commitdate
    and exists (select * from lineitem l2 where l2.l_orderkey = l1.l_orderkey and l2.l_suppkey <> l1.l_suppkey)
    and not exists (select * from lineitem l3 where l3.l_orderkey = l1.l_orderkey and l3.l_suppkey <> l1.l_suppkey
      and l3.l_receiptdate > l3.l_commitdate)
    and s_nationkey = n_nationkey and n_name = 'SAUDI ARABIA'
  group by s_name order by numwait desc, s_name limit 100`,
  `select cntrycode, count(*) as numcust, sum(c_acctbal) as totacctbal
  from (select substring(c_phone from 1 for 2) as cntrycode, c_acctbal from customer
    where substring(c_phone from 1 for 2) in ('13', '31', '23', '29', '30', '18', '17')
      and c_acctbal > (select avg(c_acctbal) from customer where c_acctbal > 0.00
        and substring(c_phone from 1 for 2) in ('13', '31', '23', '29', '30', '18', '17'))
      and not exists (select * from orders where o_custkey = c_custkey)) as custsale
  group by cntrycode order by cntrycode`,
];
