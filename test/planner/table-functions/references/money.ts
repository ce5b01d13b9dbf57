/** Section 3 of the functions as slowly as its rules read: lists by textbook Jaccard, walks of every length, transfers one after the other. */
import { formatInstant } from '../../../../src/log/values/timestamp.ts';
import { nameWords } from './made-rows.ts';
import type { Expected, Question } from './question.ts';
import type { Basis, PlainRow, World } from './world.ts';

export function* moneyQuestions(world: World, basis: Basis): Generator<Question> {
  const { dice } = world;
  yield screened(world, basis);
  const entity = `p0${dice.below(6)}`;
  const depth = 1 + dice.below(5);
  yield { call: `BENEFICIAL_OWNERSHIP_CHAIN('${entity}', MAX_DEPTH => ${depth})`, rows: ownersOf(world, basis, entity, depth) };
  const transfers = transfersAt(world, basis);
  for (const method of ['haircut', 'poison', 'fifo'] as const) {
    const [wallet, hops, least, isBackward] = [`w${dice.below(6)}`, 1 + dice.below(5), dice.of([0, 0, 41]), dice.chance(40)];
    yield {
      call: `CRYPTO_TRACE('${wallet}', MAX_HOPS => ${hops}, MIN_AMOUNT => ${least}, METHOD => '${method}', DIRECTION => '${isBackward ? 'in' : 'out'}')`,
      rows: traced(transfers, wallet, { method, hops, least, isBackward }),
      isOrdered: true,
    };
  }
  const [account, tolerance, hours] = [`w${dice.below(6)}`, dice.of([0, 2, 10, 50]), dice.of([24, 72, 300])];
  yield {
    call: `WIRE_RECONSTRUCTION('${account}', TOLERANCE_PCT => ${tolerance}, WINDOW_HOURS => ${hours})`,
    rows: chainsOf(transfers, account, tolerance, hours),
    isOrdered: true,
  };
  const [seed, hops, fee] = [`w${dice.below(6)}`, 1 + dice.below(5), dice.of([1, 5, 50])];
  yield {
    call: `HAWALA_TRACE('${seed}', MAX_HOPS => ${hops}, FEE_PCT => ${fee}, WINDOW_HOURS => ${hours})`,
    rows: legsOf(transfers, seed, hops, fee, hours),
    isOrdered: true,
  };
}

function screened(world: World, basis: Basis): Question {
  const { dice } = world;
  const listed = world.rows(basis, 'listing').flatMap(({ cells }) => (cells['name'] === null ? [] : [String(cells['name'])]));
  const name = listed.length > 0 && dice.chance(60) ? dice.of(listed) : `${dice.of(nameWords)} ${dice.of(nameWords)}`;
  const [kind, born, country] = [dice.maybe(40, 'Person'), dice.maybe(40, '1970-06-02'), dice.maybe(40, 'gb')];
  const threshold = dice.of([0.3, 0.5, 0.75]);
  const listings = world.rows(basis, 'listing').filter(({ cells }) => cells['name'] !== null || cells['aliases'] !== null);
  const rows = listings.flatMap(({ id, type, cells }): Expected[] => {
    const names = [cells['name'], ...(cells['aliases'] === null ? [] : (JSON.parse(String(cells['aliases'])) as string[]))];
    const plain = Math.max(...names.map((each) => (each === null ? 0 : jaccard(wordsOf(name), wordsOf(String(each))))));
    if (plain < threshold - 1e-9) return [];
    if (kind !== null && cells['kind'] !== null && kind.toLowerCase() !== cells['kind']) return [];
    let score = plain;
    if (born !== null && cells['birth_date'] !== null && !String(cells['birth_date']).startsWith('1970')) score *= 0.7;
    if (country !== null && cells['country'] !== null && cells['country'] !== 'GB') score *= 0.9;
    if (score < threshold - 1e-9) return [];
    const versions = listings.filter((other) => other.cells['list'] === cells['list']).map((other) => other.systemFrom);
    const version = formatInstant(versions.reduce((newest, each) => (each > newest ? each : newest), 0n));
    return [{ nodeId: id, type, name: cells['name'], score, plain_jaccard: plain, list: cells['list'], list_version: version }];
  });
  const given = [
    `'${name}', THRESHOLD => ${threshold}`,
    ...(kind === null ? [] : [`KIND => '${kind}'`]),
    ...(born === null ? [] : [`BIRTH_DATE => '${born}'`]),
    ...(country === null ? [] : [`COUNTRY => '${country}'`]),
  ];
  return { call: `SANCTIONS_SCREEN(${given.join(', ')})`, rows };
}

export function wordsOf(text: string): Set<string> {
  return new Set(
    text
      .toLowerCase()
      .split(/[^a-z]+/)
      .filter((word) => word !== ''),
  );
}

export function jaccard(left: ReadonlySet<string>, right: ReadonlySet<string>): number {
  const shared = [...left].filter((word) => right.has(word)).length;
  const all = new Set([...left, ...right]).size;
  return all === 0 ? 0 : shared / all;
}

interface Edge {
  readonly owner: string;
  readonly owned: string;
  readonly pct: number | null;
  readonly row: PlainRow;
}

function ownersOf(world: World, basis: Basis, entity: string, depthMax: number): Expected[] {
  const all = world.rows(basis, 'ownership').flatMap((row): Edge[] => {
    const { owner, owned, pct } = row.cells;
    if (typeof owner !== 'string' || typeof owned !== 'string') return [];
    return [{ owner, owned, pct: typeof pct === 'number' && pct >= 0 ? pct : null, row }];
  });
  // Steps up to each, and the shares of whatever is less than so many steps away.
  const depths = new Map([[entity, 0]]);
  for (let depth = 1; depth <= depthMax; depth++) {
    for (const { owner, owned } of all) if (depths.get(owned) === depth - 1 && !depths.has(owner)) depths.set(owner, depth);
  }
  const edges = all.filter(({ owned }) => (depths.get(owned) ?? Infinity) < depthMax);
  const shares = walks(edges, entity, [...depths.keys()]);
  const parties = world.rows(basis, 'party');
  return [...depths.keys()].flatMap((owner): Expected[] => {
    if (owner === entity) return [];
    const paths = pathsFrom(owner, entity, edges, depthMax);
    const isUnknown = paths.every((path) => path.some(({ pct }) => pct === null));
    const effective = isUnknown || shares === null ? null : shares.get(owner)!;
    return [
      {
        nodeId: owner,
        type: parties.find(({ id }) => id === owner)?.type ?? null,
        owner,
        depth: BigInt(depths.get(owner)!),
        paths: paths.map(pathOf),
        effective_pct: effective,
        cascade_50: cascades(owner, entity, edges),
        score: effective === null ? null : Math.min(1, effective / 100),
      },
    ];
  });
}

function pathOf(path: readonly Edge[]): unknown {
  const pct = path.some((edge) => edge.pct === null) ? null : path.reduce((product, edge) => (product * edge.pct!) / 100, 100);
  const edges = path.map(({ owner, owned, pct: share, row }) => {
    return { owner, owned, pct: share, valid_from: formatInstant(row.validFrom), valid_to: formatInstant(row.validTo) };
  });
  return { pct, edges };
}

/** Percent that walks of each length bring, one length after the other; null where they come to no end. */
function walks(edges: readonly Edge[], entity: string, nodes: readonly string[]): ReadonlyMap<string, number> | null {
  const sums = new Map(nodes.map((node) => [node, 0]));
  let held = new Map([[entity, 100]]);
  for (let length = 0; length < 20_000; length++) {
    const next = new Map<string, number>();
    for (const { owner, owned, pct } of edges) {
      const part = ((pct ?? 0) / 100) * (held.get(owned) ?? 0);
      if (part > 0) next.set(owner, (next.get(owner) ?? 0) + part);
    }
    for (const [node, part] of next) sums.set(node, sums.get(node)! + part);
    const most = Math.max(0, ...next.values());
    if (most < 1e-13) return sums;
    if (most > 1e15) return null;
    held = next;
  }
  return null;
}

function cascades(owner: string, entity: string, edges: readonly Edge[]): boolean {
  const held = new Set([owner]);
  for (let round = 0; round <= edges.length; round++) {
    for (const { owned } of edges) {
      const sum = edges.reduce((total, edge) => total + (edge.owned === owned && held.has(edge.owner) ? (edge.pct ?? 0) : 0), 0);
      if (sum >= 50) held.add(owned);
    }
  }
  return held.has(entity);
}

/** Without a party twice, the entity among them. */
function pathsFrom(owner: string, entity: string, edges: readonly Edge[], most: number, seen: readonly string[] = []): Edge[][] {
  if (most === 0 || owner === entity || seen.includes(owner)) return [];
  return edges
    .filter((edge) => edge.owner === owner)
    .flatMap((edge): Edge[][] => {
      if (edge.owned === entity) return [[edge]];
      return pathsFrom(edge.owned, entity, edges, most - 1, [...seen, owner]).map((rest) => [edge, ...rest]);
    });
}

interface Transfer {
  readonly from: string;
  readonly to: string;
  readonly amount: number;
  readonly currency: string;
  readonly at: bigint;
  readonly txid: string;
  readonly id: string;
  readonly type: string;
}

function transfersAt(world: World, basis: Basis): Transfer[] {
  const all = world.rows(basis, 'transfer').flatMap(({ id, type, validFrom, cells }): Transfer[] => {
    const { from, to, amount, currency, at, txid } = cells;
    if (typeof from !== 'string' || typeof to !== 'string' || typeof amount !== 'number' || amount <= 0) return [];
    const when = instantOf(at) ?? validFrom;
    return [{ from, to, amount, currency: String(currency ?? ''), at: when, txid: String(txid ?? id), id, type }];
  });
  // Sorting keeps those of one instant and txid in the order in which they were read.
  return all.sort((a, b) => (a.at === b.at ? (a.txid < b.txid ? -1 : a.txid > b.txid ? 1 : 0) : a.at < b.at ? -1 : 1));
}

export function instantOf(cell: unknown): bigint | null {
  return typeof cell === 'string' ? BigInt(Date.parse(cell)) * 1_000_000n : null;
}

interface TraceOptions {
  readonly method: 'haircut' | 'poison' | 'fifo';
  readonly hops: number;
  readonly least: number;
  readonly isBackward: boolean;
}

/** One transfer after the other, each account with its lots of money: [amount, tainted]; backwards with ends and time turned round. */
function traced(
  transfers: readonly Transfer[],
  seed: string,
  { method, hops: hopsMax, least, isBackward }: TraceOptions,
): Expected[] {
  const lots = new Map<string, [number, number][]>();
  const reached = new Map<string, { readonly hop: number; readonly path: readonly string[] }>();
  const found: { transfer: Transfer; hop: number; taint: number; path: readonly string[] }[] = [];
  const ends = (each: Transfer): [string, string] => (isBackward ? [each.to, each.from] : [each.from, each.to]);
  for (const transfer of isBackward ? transfers.toReversed() : transfers) {
    const { amount, currency } = transfer;
    const [from, to] = ends(transfer);
    const [source, target] = [`${currency} ${from}`, `${currency} ${to}`];
    const held = lots.get(source) ?? [];
    const balance = held.reduce((sum, [each]) => sum + each, 0);
    const dirty = held.reduce((sum, [, each]) => sum + each, 0);
    let taint = 0;
    if (from === seed) taint = amount;
    else if (method === 'poison') taint = dirty > 0 ? amount : 0;
    else if (method === 'haircut') {
      taint = dirty * Math.min(1, amount / Math.max(balance, amount));
      lots.set(source, [[Math.max(0, balance - amount), dirty - taint]]);
    } else {
      for (let left = amount; left > 0 && held.length > 0; ) {
        const [size, isDirty] = held[0]!;
        const part = Math.min(left, size);
        if (isDirty > 0) taint += part;
        left -= part;
        if (part === size) held.shift();
        else held[0] = [size - part, isDirty > 0 ? size - part : 0];
      }
    }
    const before = from === seed ? { hop: 0, path: [] } : reached.get(source);
    const isFollowed = before !== undefined && taint > 1e-9 && amount >= least && before.hop < hopsMax;
    if (isFollowed) {
      const [hop, path] = [before.hop + 1, [...before.path, from]];
      found.push({ transfer, hop, taint, path: [...path, to] });
      if (to !== seed && hop < (reached.get(target)?.hop ?? Infinity)) reached.set(target, { hop, path });
    }
    const given = isFollowed ? taint : 0;
    const into: [number, number][] =
      method === 'fifo'
        ? [
            [given, given],
            [amount - given, 0],
          ]
        : [[amount, given]];
    lots.set(target, [...(lots.get(target) ?? []), ...into.filter(([size]) => size > 0)]);
  }
  const order = new Map(transfers.map((each, i) => [each, i]));
  found.sort((a, b) => a.hop - b.hop || order.get(a.transfer)! - order.get(b.transfer)!);
  return found.map(({ transfer, hop, taint, path }) => {
    const { type, from, to, txid, at, amount } = transfer;
    const nodeId = path.at(-1)!;
    return { nodeId, type, hop: BigInt(hop), from, to, txid, at, amount, tainted: taint, path, score: taint / amount };
  });
}

const hourNs = 3_600_000_000_000n;

/** Every subset of what left within the window; of those nearest to the sum the one of fewest transfers, then of the earliest. */
function chainsOf(transfers: readonly Transfer[], account: string, tolerancePct: number, hours: number): Expected[] {
  const taken = new Set<Transfer>();
  const rows: Expected[] = [];
  let chain = 0n;
  for (const [i, incoming] of transfers.entries()) {
    if (incoming.to !== account) continue;
    const tolerance = (incoming.amount * tolerancePct) / 100;
    const candidates = transfers.slice(i + 1).filter((each) => {
      const isTimely = each.at <= incoming.at + hourNs * BigInt(hours);
      const isSmall = each.amount <= incoming.amount + tolerance;
      return each.from === account && each.currency === incoming.currency && isTimely && isSmall && !taken.has(each);
    });
    let best: Transfer[] | null = null;
    const apartOf = (subset: readonly Transfer[]): number =>
      Math.abs(subset.reduce((sum, each) => sum + each.amount, 0) - incoming.amount);
    for (const subset of subsetsOf(candidates)) {
      if (subset.length === 0 || apartOf(subset) > tolerance + 1e-9) continue;
      const nearer = best === null ? -1 : apartOf(subset) - apartOf(best);
      if (best === null || nearer < -1e-9 || (nearer < 1e-9 && isEarlier(subset, best, candidates))) best = subset;
    }
    if (best === null) continue;
    for (const each of best) taken.add(each);
    const sum = best.reduce((total, each) => total + each.amount, 0);
    const residual = ((incoming.amount - sum) / incoming.amount) * 100;
    const score = tolerancePct === 0 ? 1 : 1 - Math.abs(residual) / tolerancePct;
    [incoming, ...best].forEach(({ id, type, from, to, at, amount }, step) => {
      rows.push({
        nodeId: id,
        type,
        chain,
        step: BigInt(step),
        from,
        to,
        at,
        amount,
        residual_pct: residual,
        score,
        method: 'subsets/1',
      });
    });
    chain++;
  }
  return rows;
}

/** In the order in which they are given. */
function* subsetsOf<T>(all: readonly T[]): Generator<T[]> {
  for (let mask = 0; mask < 2 ** all.length; mask++) yield all.filter((_, i) => (mask >> i) % 2 === 1);
}

function isEarlier(one: readonly Transfer[], other: readonly Transfer[], order: readonly Transfer[]): boolean {
  if (one.length !== other.length) return one.length < other.length;
  const places = (of: readonly Transfer[]): string => of.map((each) => String(order.indexOf(each)).padStart(3, '0')).join(' ');
  return places(one) < places(other);
}

/** Each transfer is a leg by the first payment, of the fewest hops and in the order of time, that it may pay out. */
function legsOf(transfers: readonly Transfer[], seed: string, hopsMax: number, feePct: number, hours: number): Expected[] {
  interface Leg {
    readonly at: number;
    readonly hop: number;
    readonly paidIn: Transfer | null;
  }
  const legs = transfers.flatMap((each, at): Leg[] => (each.from === seed ? [{ at, hop: 1, paidIn: null }] : []));
  const paid = (from: string, to: string, currency: string, after: number, before: number): number =>
    transfers.findIndex(
      (each, i) => i > after && i < before && each.from === from && each.to === to && each.currency === currency,
    );
  const isHawala = (payOut: Transfer, paidIn: Transfer | null): boolean => paidIn !== null && payOut.from !== paidIn.to;
  for (let hop = 2; hop <= hopsMax; hop++) {
    for (const { at } of legs.filter((each) => each.hop === hop - 1).toSorted((a, b) => a.at - b.at)) {
      const paidIn = transfers[at]!;
      transfers.forEach((payOut, i) => {
        if (i <= at || payOut.currency !== paidIn.currency || legs.some((leg) => leg.at === i)) return;
        const isWithin = payOut.amount <= paidIn.amount && payOut.amount >= paidIn.amount * (1 - feePct / 100) - 1e-9;
        if (!isWithin || payOut.at > paidIn.at + hourNs * BigInt(hours)) return;
        if (payOut.from === seed || payOut.to === seed || payOut.to === paidIn.to) return;
        if (isHawala(payOut, paidIn) && paid(paidIn.to, payOut.from, paidIn.currency, at, i) >= 0) return;
        legs.push({ at: i, hop, paidIn });
      });
    }
  }
  return legs
    .toSorted((a, b) => a.hop - b.hop || a.at - b.at)
    .map(({ at, hop, paidIn }): Expected => {
      const payOut = transfers[at]!;
      const residual = paidIn === null ? 0 : ((paidIn.amount - payOut.amount) / paidIn.amount) * 100;
      const hawala = isHawala(payOut, paidIn);
      const settled = transfers.find(
        (each, i) =>
          hawala &&
          i > at &&
          each.currency === payOut.currency &&
          ((each.from === paidIn!.to && each.to === payOut.from) || (each.to === paidIn!.to && each.from === payOut.from)),
      );
      return {
        nodeId: payOut.id,
        type: payOut.type,
        hop: BigInt(hop),
        kind: hawala ? 'hawala' : 'transfer',
        from: payOut.from,
        to: payOut.to,
        at: payOut.at,
        amount: payOut.amount,
        residual_pct: residual,
        broker: hawala ? paidIn!.to : null,
        settled_by: settled?.txid ?? null,
        score: hawala ? 0.3 + 0.2 * (1 - residual / feePct) + (settled === undefined ? 0 : 0.4) : 1,
      };
    });
}
