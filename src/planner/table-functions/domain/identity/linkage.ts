/**
 * Clusters of rows that are one thing, found from some of them outwards. Rows are linked where they are more likely one than two, or were
 * judged to be one; links are followed in the order of their scores, and none is that would bring together rows that were judged to be
 * two. A cluster is the same whichever of its rows it is found from.
 */
import { ServiceError } from '../../../../errors.ts';
import { compareText } from '../../../../log/values/value.ts';
import type { Judgement } from '../../../../projections/access-paths.ts';
import { sortItemsInSteps, type Steps } from '../../../graph/stepped-sort.ts';
import { Clusters, newestOfPairs, rowId } from '../../../identity/judged-clusters.ts';
import type { NamedRow } from '../../../identity/named-rows.ts';
import type { Collection, Entity } from './compared-rows.ts';
import { likelihoodOf, type Trained } from './likelihood.ts';

/** Two rows that are one thing. */
export interface Link {
  readonly a: string;
  readonly b: string;
  readonly score: number;
  /** By group of columns, in bits; null where somebody said so. */
  readonly bits: Readonly<Record<string, number>> | null;
}

export interface Member extends NamedRow {
  readonly id: string;
  /** That of its best link within the cluster; 1 of a row that is alone. */
  readonly score: number;
  /** Best first. */
  readonly links: readonly Link[];
  readonly systemFrom: bigint | null;
}

/** Members by id, and the smallest key among them. */
export interface Cluster {
  readonly members: readonly Member[];
  readonly canonical: string;
}

/** More rows than that are no one thing: a value that many share joins them. */
const membersMax = 4_096;
const looksPerPair = 100;
const pairsAtOnce = 256;

export class Linkage {
  readonly #collections: ReadonlyMap<string, Collection>;
  readonly #judged = new Map<string, Judgement[]>();
  /** Whether a row that is in no collection is there for the caller. */
  readonly #isThere: (row: NamedRow) => boolean;
  readonly #look: (count: number) => void;
  readonly #trained: ReadonlyMap<Collection, Trained>;
  #pairs = 0;

  constructor(
    collections: readonly Collection[],
    judgements: readonly Judgement[],
    {
      isThere,
      look,
      trained,
    }: {
      isThere: (row: NamedRow) => boolean;
      look: (count: number) => void;
      /** By collection; one that is missing is weighed by built-in weights, and so are rows of two types. */
      trained: ReadonlyMap<Collection, Trained>;
    },
  ) {
    this.#collections = new Map(collections.map((each) => [each.type, each]));
    this.#isThere = isThere;
    this.#look = look;
    this.#trained = trained;
    for (const each of newestOfPairs(judgements)) {
      for (const row of [each.a, each.b]) {
        const known = this.#judged.get(rowId(row));
        if (known === undefined) this.#judged.set(rowId(row), [each]);
        else known.push(each);
      }
    }
  }

  /** The cluster of each of some rows; of two in one cluster, one. */
  *clustersOf(seeds: readonly NamedRow[]): Steps<Cluster[]> {
    const clusters: Cluster[] = [];
    const known = new Set<string>();
    for (const seed of seeds) {
      if (known.has(rowId(seed))) continue;
      const cluster = yield* this.#clusterOf(seed);
      for (const { id } of cluster.members) known.add(id);
      clusters.push(cluster);
    }
    return clusters;
  }

  *#clusterOf(seed: NamedRow): Steps<Cluster> {
    const rows = new Map<string, NamedRow>([[rowId(seed), seed]]);
    const links = new Map<string, Link>();
    const judgements = new Set<Judgement>();
    // Rows are added while the loop goes on.
    for (const [id, row] of rows) {
      if (rows.size > membersMax)
        throw new ServiceError(
          'REL_SCAN_CAP',
          `more than ${membersMax} rows hang together: name a type with SOURCE, or split some`,
        );
      for (const judgement of this.#judged.get(id) ?? []) {
        const other = rowId(judgement.a) === id ? judgement.b : judgement.a;
        if (!this.#sees(other)) continue;
        judgements.add(judgement);
        if (judgement.judgement === 'positive') rows.set(rowId(other), other);
      }
      for (const link of yield* this.#linksOf(row, links)) {
        links.set(keyOf(link), link);
        for (const end of [link.a, link.b]) if (!rows.has(end)) rows.set(end, namedRow(end));
      }
    }
    const within = [...judgements]
      .filter(({ a, b }) => rows.has(rowId(a)) && rows.has(rowId(b)))
      .sort((x, y) => x.position - y.position);
    const clusters = new Clusters(within);
    const sortedLinks = yield* sortItemsInSteps(
      [...links.values()],
      (x, y) => y.score - x.score || compareText(keyOf(x), keyOf(y)),
    );
    for (const { a, b } of sortedLinks) clusters.join(a, b);
    const ids = clusters.membersOf(rowId(seed));
    const all = [...within.filter(({ judgement }) => judgement === 'positive').map(linkOf), ...sortedLinks].filter(
      ({ a, b }) => ids.has(a) && ids.has(b),
    );
    return clusterOf(
      [...ids].map((id) => rows.get(id)!),
      all,
      (row) => this.#entity(row)?.systemFrom ?? null,
    );
  }

  /** Links of a row to others that are not known yet. */
  *#linksOf(row: NamedRow, known: ReadonlyMap<string, Link>): Steps<Link[]> {
    const entity = this.#entity(row);
    const own = this.#collections.get(row.type);
    if (entity === undefined || own === undefined) return [];
    const keys = own.keysOf(entity);
    const links: Link[] = [];
    for (const other of this.#collections.values()) {
      const trained = other === own ? (this.#trained.get(own) ?? null) : null;
      for (const candidate of other.withKeys(keys, own)) {
        if (candidate === entity) continue;
        if (++this.#pairs % pairsAtOnce === 0) {
          this.#look(pairsAtOnce * looksPerPair);
          yield;
        }
        // The smaller id first: sums run in one order, whichever of the two is asked about.
        const isFirst = (compareText(entity.type, candidate.type) || compareText(entity.nodeId, candidate.nodeId)) < 0;
        const likelihood = isFirst
          ? likelihoodOf(entity, own, candidate, other, trained)
          : likelihoodOf(candidate, other, entity, own, trained);
        if (likelihood === null) continue;
        const id = rowId({ type: candidate.type, key: candidate.nodeId });
        const link = { a: isFirst ? rowId(row) : id, b: isFirst ? id : rowId(row), ...likelihood };
        if (!known.has(keyOf(link))) links.push(link);
      }
    }
    return links;
  }

  #entity({ type, key }: NamedRow): Entity | undefined {
    return this.#collections.get(type)?.find(key);
  }

  #sees(row: NamedRow): boolean {
    return this.#entity(row) !== undefined || this.#isThere(row);
  }
}

function clusterOf(rows: readonly NamedRow[], links: readonly Link[], systemFrom: (row: NamedRow) => bigint | null): Cluster {
  const linksOf = new Map<string, Link[]>();
  for (const link of links) {
    for (const id of [link.a, link.b]) {
      const own = linksOf.get(id);
      if (own === undefined) linksOf.set(id, [link]);
      else own.push(link);
    }
  }
  const members = rows.map((row): Member => {
    const id = rowId(row);
    const own = linksOf.get(id) ?? [];
    return { ...row, id, score: own[0]?.score ?? 1, links: own, systemFrom: systemFrom(row) };
  });
  members.sort((x, y) => compareText(x.key, y.key) || compareText(x.type, y.type));
  return { members, canonical: members[0]!.key };
}

function linkOf({ a, b }: Judgement): Link {
  const [left, right] = inOrder(rowId(a), rowId(b));
  return { a: left, b: right, score: 1, bits: null };
}

function keyOf({ a, b }: Link): string {
  return `${a}\u0001${b}`;
}

function inOrder(a: string, b: string): [string, string] {
  return compareText(a, b) <= 0 ? [a, b] : [b, a];
}

function namedRow(id: string): NamedRow {
  const at = id.indexOf('\u0000');
  return { type: id.slice(0, at), key: id.slice(at + 1) };
}
