/**
 * Correlations over a stream of matches: counts of events, of different values and of rules, in windows of time and groups of
 * equal fields. What a match raises depends on the matches of its group within twice the timespan before it, and on nothing
 * older, so that a restart finds the state again in the rows.
 *
 * - A window ends at an event and holds what lies less than `timespan` before it, wherever it begins.
 * - A match is raised where a window fits and the one of the event before it, within the timespan, does not.
 * - A row without one of the fields of `group-by` belongs to no group.
 */
import { countMax } from './correlation-rule.ts';
import { Refusal } from './rule-refusal.ts';
import type { SigmaCorrelation, SigmaDocument } from './sigma-rule.ts';

/** One match of a rule, or of a correlation that another one refers to. */
export interface MatchEvent {
  /** Ordinal of the document among those that were given. */
  readonly document: number;
  /** When the event happened, ns. */
  readonly instant: bigint;
  /** The row, for who reads the result. */
  readonly row: number;
  /** The text of one of its fields; null where it has none. */
  readonly valueOf: (field: string) => string | null;
}

/** Groups of one correlation: the one that has been quiet longest makes room. */
const groupsMax = 100_000;

interface GroupEvent {
  readonly instant: bigint;
  readonly document: number;
  readonly value: string;
}

/** In order of their instants. */
type Group = GroupEvent[];

/** Correlations beside the documents that they refer to. */
export interface LinkedCorrelations {
  /** Ordinals of correlations, each behind those that it refers to. */
  readonly order: readonly number[];
  /** By correlation: ordinals of the documents that it refers to. */
  readonly sources: ReadonlyMap<number, readonly number[]>;
  /** Documents that only serve a correlation. */
  readonly silent: ReadonlySet<number>;
  /** By ordinal: why a correlation is refused. */
  readonly refused: ReadonlyMap<number, Refusal>;
}

/** Resolves references by id and by name. A document is null where it was refused. */
export function linkCorrelations(documents: readonly (SigmaDocument | null)[]): LinkedCorrelations {
  const byReference = new Map<string, number>();
  documents.forEach((document, ordinal) => {
    for (const reference of [document?.id, document?.name]) if (reference) byReference.set(reference, ordinal);
  });
  const sources = new Map<number, readonly number[]>();
  const refused = new Map<number, Refusal>();
  const order: number[] = [];
  const state = new Map<number, 'open' | 'done'>();
  const visit = (ordinal: number): boolean => {
    const document = documents[ordinal];
    if (document?.kind !== 'correlation') return document !== undefined && document !== null;
    if (state.get(ordinal) === 'done') return !refused.has(ordinal);
    if (state.get(ordinal) === 'open') return false;
    state.set(ordinal, 'open');
    const dueEvents: number[] = [];
    for (const reference of document.rules) {
      const target = byReference.get(reference);
      if (target === undefined)
        refused.set(ordinal, new Refusal('correlation.rules', `there is no rule ${JSON.stringify(reference)}`));
      else if (!visit(target)) {
        refused.set(
          ordinal,
          new Refusal('correlation.rules', `${JSON.stringify(reference)} refers back to this correlation, or is refused`),
        );
      } else dueEvents.push(target);
    }
    state.set(ordinal, 'done');
    if (refused.has(ordinal)) return false;
    sources.set(ordinal, dueEvents);
    order.push(ordinal);
    return true;
  };
  documents.forEach((_, ordinal) => visit(ordinal));
  const silent = new Set<number>();
  for (const ordinal of order) {
    const correlation = documents[ordinal] as SigmaCorrelation;
    if (!correlation.generate) for (const source of sources.get(ordinal)!) silent.add(source);
  }
  return { order, sources, silent, refused };
}

export class Correlator {
  readonly #correlations: readonly Running[];

  constructor(documents: readonly (SigmaDocument | null)[], linked: LinkedCorrelations) {
    this.#correlations = linked.order.map(
      (ordinal) => new Running(ordinal, documents[ordinal] as SigmaCorrelation, linked.sources.get(ordinal)!, documents),
    );
  }

  /** How far back the state reaches, ns: twice the longest timespan, through all that refer to each other. */
  get reachNs(): bigint {
    return this.#correlations.reduce((sum, { timespanNs }) => sum + 2n * timespanNs, 0n);
  }

  /** Takes one match and returns those of correlations that it completes, in order. */
  observe(event: MatchEvent): readonly MatchEvent[] {
    const events = [event];
    for (const running of this.#correlations) {
      // A correlation sees those that stand before it, too.
      for (let i = 0, length = events.length; i < length; i++) {
        const event = running.observe(events[i]!);
        if (event !== null) events.push(event);
      }
    }
    return events.slice(1);
  }
}

class Running {
  readonly #ordinal: number;
  readonly #correlation: SigmaCorrelation;
  readonly #sources: readonly number[];
  /** By source, the field behind each of `group-by`. */
  readonly #groupFields: ReadonlyMap<number, readonly string[]>;
  readonly #keptMax: number;
  /** In order of their last event. */
  readonly #groups = new Map<string, Group>();

  constructor(
    ordinal: number,
    correlation: SigmaCorrelation,
    sources: readonly number[],
    documents: readonly (SigmaDocument | null)[],
  ) {
    this.#ordinal = ordinal;
    this.#correlation = correlation;
    this.#sources = sources;
    this.#groupFields = new Map(
      sources.map((source) => {
        const document = documents[source]!;
        const fields = correlation.groupBy.map((name) => {
          const alias = correlation.aliases.get(name);
          return alias?.get(document.name ?? '') ?? alias?.get(document.id ?? '') ?? name;
        });
        return [source, fields] as const;
      }),
    );
    const most = Math.max(0, ...correlation.bounds.map(({ value }) => value));
    this.#keptMax = correlation.type === 'event_count' ? 2 * most + 4 : countMax;
  }

  get timespanNs(): bigint {
    return this.#correlation.timespanNs;
  }

  observe(event: MatchEvent): MatchEvent | null {
    const fields = this.#groupFields.get(event.document);
    if (fields === undefined) return null;
    const values = fields.map((field) => event.valueOf(field));
    if (values.includes(null)) return null;
    const { field } = this.#correlation;
    const value = field === null ? '' : event.valueOf(field);
    if (value === null) return null;
    const group = this.#group(JSON.stringify(values));
    const at = insert(group, { instant: event.instant, document: event.document, value });
    const completed = this.#completes(group, at);
    const { timespanNs } = this.#correlation;
    const newest = group.at(-1)!.instant;
    let stale = Math.max(0, group.length - this.#keptMax);
    while (group[stale]!.instant <= newest - 2n * timespanNs) stale++;
    group.splice(0, stale);
    return completed ? { document: this.#ordinal, instant: event.instant, row: event.row, valueOf: event.valueOf } : null;
  }

  #group(key: string): Group {
    const group = this.#groups.get(key) ?? [];
    this.#groups.delete(key);
    this.#groups.set(key, group);
    if (this.#groups.size > groupsMax) this.#groups.delete(this.#groups.keys().next().value!);
    return group;
  }

  /** Looks at the windows that the event lies in: those that end at it, and at later events that came before it. */
  #completes(group: Group, from: number): boolean {
    const { timespanNs } = this.#correlation;
    const { instant } = group[from]!;
    const others = group.toSpliced(from, 1);
    const fits = (events: Group, end: number): boolean => {
      let begin = end;
      while (begin > 0 && events[begin - 1]!.instant > events[end]!.instant - timespanNs) begin--;
      return this.#holds(events, begin, end + 1);
    };
    let isBegun = false;
    for (let end = from; end < group.length && group[end]!.instant - timespanNs < instant; end++) {
      // A window that fitted without this event belongs to an episode that was raised then.
      if (end > from && fits(others, end - 1)) return false;
      if (isBegun || !fits(group, end)) continue;
      const hasPrevious = end > 0 && group[end - 1]!.instant > group[end]!.instant - timespanNs;
      isBegun = !hasPrevious || !fits(group, end - 1);
    }
    return isBegun;
  }

  #holds(events: Group, from: number, to: number): boolean {
    const { type, bounds } = this.#correlation;
    if (type === 'temporal_ordered') return this.#isInOrder(events, from, to);
    const count =
      type === 'event_count'
        ? to - from
        : new Set(events.slice(from, to).map((each) => (type === 'value_count' ? each.value : each.document))).size;
    if (bounds.length === 0) return count === new Set(this.#sources).size;
    return bounds.every(({ bound, value }) => {
      switch (bound) {
        case 'gt':
          return count > value;
        case 'gte':
          return count >= value;
        case 'lt':
          return count < value;
        case 'lte':
          return count <= value;
        case 'eq':
          return count === value;
        case 'neq':
          return count !== value;
      }
    });
  }

  #isInOrder(events: Group, from: number, to: number): boolean {
    let next = 0;
    for (let i = from; i < to && next < this.#sources.length; i++) if (events[i]!.document === this.#sources[next]) next++;
    return next === this.#sources.length;
  }
}

/** Index at which the event stands afterwards: behind those of the same instant. */
function insert(events: Group, event: GroupEvent): number {
  let at = events.length;
  while (at > 0 && events[at - 1]!.instant > event.instant) at--;
  events.splice(at, 0, event);
  return at;
}
