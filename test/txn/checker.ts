/**
 * Says what in a history snapshot isolation does not allow, after Adya's phenomena as Elle looks for them
 * (Kingsbury and Alvaro, 2020): the order of versions is read off the lists, and off what a writer of a register had read
 * before it wrote; then ww, wr, rw edges and the order of real time make a graph. What must hold: nothing aborted or
 * intermediate is read, own writes are read, nothing acknowledged is lost, nobody overwrites what they did not see, and
 * no cycle but one with two rw edges in a row (which snapshot isolation allows: write skew).
 */
import type { History, Step, Transacted } from './history.ts';

export type Phenomenon =
  | 'G0'
  | 'G1a'
  | 'G1b'
  | 'G1c'
  | 'G-single'
  | 'G-nonadjacent'
  | 'lost update'
  | 'lost append'
  | 'duplicate'
  | 'incompatible order'
  | 'own write unseen'
  | 'unrepeatable read'
  | 'never written'
  | 'stale read'
  | 'broken sum';

export interface Anomaly {
  readonly phenomenon: Phenomenon;
  readonly what: string;
}

type EdgeKind = 'ww' | 'wr' | 'rw' | 'time';

interface Edge {
  readonly to: number;
  readonly kind: EdgeKind;
}

export function anomalies(history: History): Anomaly[] {
  const checker = new Checker(history);
  checker.check();
  return checker.found;
}

class Checker {
  readonly found: Anomaly[] = [];
  readonly #history: History;
  readonly #all: readonly Transacted[];
  /** By key and element or value: the number of the transaction that wrote it. */
  readonly #writers = new Map<string, number>();
  readonly #edges: Edge[][];
  /** Number of the transactions whose writes somebody saw. */
  readonly #seen = new Set<number>();

  constructor(history: History) {
    this.#history = history;
    this.#all = history.transactions;
    this.#edges = this.#all.map(() => []);
  }

  check(): void {
    this.#collectWriters();
    for (const [number, { end }] of this.#all.entries()) if (end !== 'aborted') this.#checkWithin(number);
    this.#followLists();
    this.#followRegisters();
    this.#checkSums();
    this.#followTime();
    this.#findCycles();
  }

  #say(phenomenon: Phenomenon, what: string): void {
    this.found.push({ phenomenon, what });
  }

  #collectWriters(): void {
    for (const [number, { steps }] of this.#all.entries())
      for (const step of steps) {
        if (step.kind === 'append') this.#writers.set(`${step.key}+${step.element}`, number);
        if (step.kind === 'write') this.#writers.set(`${step.key}=${step.value}`, number);
      }
  }

  /** Whoever reads sees what the transaction wrote itself, and twice the same of what it did not write. */
  #checkWithin(number: number): void {
    const own = new Map<string, number[]>();
    const read = new Map<string, readonly number[]>();
    const set = new Map<string, number>();
    const got = new Map<string, number>();
    for (const step of this.#all[number]!.steps) {
      if (step.kind === 'append') own.set(step.key, [...(own.get(step.key) ?? []), step.element]);
      if (step.kind === 'write') set.set(step.key, step.value);
      if (step.kind === 'list') {
        const mine = own.get(step.key) ?? [];
        const others = step.saw.slice(0, step.saw.length - mine.length);
        if (mine.some((element, i) => step.saw[others.length + i] !== element))
          this.#say('own write unseen', `${this.#name(number)} appended ${mine} to ${step.key} and reads ${step.saw}`);
        else {
          const before = read.get(step.key);
          if (before !== undefined && !same(before, others))
            this.#say('unrepeatable read', `${this.#name(number)} reads ${step.key} as ${before}, then as ${others}`);
          read.set(step.key, others);
        }
      }
      if (step.kind === 'read') {
        const mine = set.get(step.key);
        const before = got.get(step.key);
        if (mine !== undefined && mine !== step.saw)
          this.#say('own write unseen', `${this.#name(number)} wrote ${mine} to ${step.key} and reads ${step.saw}`);
        else if (mine === undefined && before !== undefined && before !== step.saw)
          this.#say('unrepeatable read', `${this.#name(number)} reads ${step.key} as ${before}, then as ${step.saw}`);
        if (mine === undefined) got.set(step.key, step.saw);
      }
    }
  }

  /** The longest list of a key that was seen is the order of its versions: each other one begins it. */
  #followLists(): void {
    const seen = new Map<string, { readonly by: number; readonly saw: readonly number[] }[]>();
    const appended = new Map<string, { readonly by: number; readonly element: number }[]>();
    for (const [number, { end, steps }] of this.#all.entries()) {
      for (const step of steps)
        if (step.kind === 'append' && end === 'committed') put(appended, step.key, { by: number, element: step.element });
      if (end === 'aborted') continue;
      const own = new Map<string, number>();
      for (const step of steps) {
        if (step.kind === 'append') own.set(step.key, (own.get(step.key) ?? 0) + 1);
        if (step.kind === 'list')
          put(seen, step.key, { by: number, saw: step.saw.slice(0, step.saw.length - (own.get(step.key) ?? 0)) });
      }
    }
    for (const [key, list] of this.#history.lists ?? []) put(seen, key, { by: -1, saw: list });
    for (const [key, reads] of seen) {
      const order = reads.reduce((longest, { saw }) => (saw.length > longest.length ? saw : longest), reads[0]!.saw);
      if (new Set(order).size < order.length) this.#say('duplicate', `${key} is ${order}`);
      const writers = order.map((element) => this.#writerOf(`${key}+${element}`, `${element} in ${key}`));
      for (const { by, saw } of reads) this.#followRead(by, key, saw, order, writers);
      for (const [i, writer] of writers.entries())
        if (i > 0 && writer !== null && writers[i - 1] !== null) this.#edge(writers[i - 1]!, writer, 'ww');
      if (this.#history.lists === undefined) continue;
      const standing = new Set(order);
      for (const { by, element } of appended.get(key) ?? [])
        if (!standing.has(element))
          this.#say('lost append', `${this.#name(by)} appended ${element} to ${key}, which is ${order}`);
    }
  }

  #followRead(
    by: number,
    key: string,
    saw: readonly number[],
    order: readonly number[],
    writers: readonly (number | null)[],
  ): void {
    if (saw.some((element, i) => element !== order[i]))
      return this.#say('incompatible order', `${key} is seen as ${saw} and as ${order}`);
    if (by < 0) return;
    const last = saw.length === 0 ? null : writers[saw.length - 1]!;
    if (last !== null) {
      this.#edge(last, by, 'wr');
      // Whoever sees one append of a transaction sees all that it made to this list.
      if (last !== by && writers[saw.length] === last)
        this.#say('G1b', `${this.#name(by)} sees ${key} as ${saw}, in the middle of ${this.#name(last)}`);
    }
    const next = writers[saw.length];
    if (next !== undefined && next !== null && next !== last) this.#edge(by, next, 'rw');
  }

  /** Number of the transaction that wrote it; null, and an anomaly, where no transaction that may be seen did. */
  #writerOf(written: string, what: string): number | null {
    const writer = this.#writers.get(written);
    if (writer === undefined) {
      this.#say('never written', what);
      return null;
    }
    this.#seen.add(writer);
    if (this.#all[writer]!.end === 'aborted') this.#say('G1a', `${what}, which ${this.#name(writer)} wrote and took back`);
    return writer;
  }

  /** A register's writer read it before: what it read is the version under the one that it wrote. */
  #followRegisters(): void {
    const over = new Map<string, { readonly by: number; readonly value: number }[]>();
    const readers = new Map<string, number[]>();
    for (const [number, { end, steps }] of this.#all.entries()) {
      if (end === 'aborted') continue;
      const base = new Map<string, number>();
      const last = new Map<string, number>();
      for (const step of steps) {
        if (step.kind === 'read' && !last.has(step.key)) base.set(step.key, step.saw);
        if (step.kind === 'write') last.set(step.key, step.value);
      }
      for (const [key, saw] of base) {
        put(readers, `${key}=${saw}`, number);
        if (last.has(key)) put(over, `${key}=${saw}`, { by: number, value: last.get(key)! });
      }
    }
    const stands = new Set([...(this.#history.registers ?? [])].map(([key, value]) => `${key}=${value}`));
    for (const [version, numbers] of readers) {
      const [key, value] = version.split('=');
      if (value === '0') continue;
      const writer = this.#writerOf(version, `${value} in ${key}`);
      if (writer === null) continue;
      const finally_ = this.#lastWrite(writer, key!);
      if (finally_ !== Number(value))
        for (const by of numbers)
          if (by !== writer)
            this.#say('G1b', `${this.#name(by)} reads ${version}, and ${this.#name(writer)} ends with ${finally_}`);
      for (const by of numbers) this.#edge(writer, by, 'wr');
    }
    for (const [version, writers] of over) {
      // Whether one whose end is not known was written shows where somebody saw it.
      const sure = writers.filter(({ by }) => this.#all[by]!.end === 'committed' || this.#seen.has(by));
      if (sure.length > 1)
        this.#say('lost update', `${sure.map(({ by }) => this.#name(by)).join(' and ')} write over ${version}`);
      for (const { by } of sure) {
        const under = this.#writers.get(version);
        if (under !== undefined) this.#edge(under, by, 'ww');
        for (const reader of readers.get(version) ?? []) this.#edge(reader, by, 'rw');
      }
    }
    if (this.#history.registers === undefined) return;
    for (const [version, writers] of over)
      for (const { by, value } of writers) {
        const [key] = version.split('=');
        if (this.#all[by]!.end !== 'committed') continue;
        if (!stands.has(`${key}=${value}`) && !over.has(`${key}=${value}`))
          this.#say('lost update', `${this.#name(by)} wrote ${value} to ${key}: nobody wrote over it, and it does not stand`);
      }
  }

  #lastWrite(number: number, key: string): number | null {
    const writes = this.#all[number]!.steps.filter(
      (step): step is Extract<Step, { kind: 'write' }> => step.kind === 'write' && step.key === key,
    );
    return writes.at(-1)?.value ?? null;
  }

  #checkSums(): void {
    const { total } = this.#history;
    if (total === undefined) return;
    for (const [number, { end, steps }] of this.#all.entries())
      for (const step of end === 'aborted' ? [] : steps) {
        if (step.kind !== 'balances') continue;
        const sum = [...step.saw.values()].reduce((so, balance) => so + balance, 0);
        if (sum !== total) this.#say('broken sum', `${this.#name(number)} sees ${sum} in all accounts, not ${total}`);
      }
  }

  /** Whoever begins after an acknowledged commit sees it. One edge from each client's last: its own order brings the others. */
  #followTime(): void {
    const byClient = new Map<number, number[]>();
    for (const [number, { client, end }] of this.#all.entries()) if (end === 'committed') put(byClient, client, number);
    for (const numbers of byClient.values()) numbers.sort((a, b) => this.#all[a]!.ended - this.#all[b]!.ended);
    for (const [number, { began, end }] of this.#all.entries()) {
      if (end === 'aborted') continue;
      for (const numbers of byClient.values()) {
        const last = lastBefore(numbers, (other) => this.#all[other]!.ended < began);
        if (last !== null) this.#edge(last, number, 'time');
      }
    }
  }

  #edge(from: number, to: number, kind: EdgeKind): void {
    if (from !== to) this.#edges[from]!.push({ to, kind });
  }

  /** Cycles of ww, wr and time edges; then of those with single rw edges between them. */
  #findCycles(): void {
    const among = (kinds: readonly EdgeKind[]): number[][] =>
      this.#edges.map((edges) => edges.filter(({ kind }) => kinds.includes(kind)).map(({ to }) => to));
    const steps: [Phenomenon, readonly EdgeKind[]][] = [
      ['G0', ['ww']],
      ['G1c', ['ww', 'wr']],
      ['stale read', ['ww', 'wr', 'time']],
    ];
    for (const [phenomenon, kinds] of steps) {
      const cycle = cycleIn(among(kinds));
      if (cycle !== null) return this.#say(phenomenon, cycle.map((number) => this.#name(number)).join(' → '));
    }
    for (const [kinds, single, several] of [
      [['ww', 'wr'], 'G-single', 'G-nonadjacent'],
      [['ww', 'wr', 'time'], 'stale read', 'stale read'],
    ] as const) {
      const plain = among(kinds);
      const rw = among(['rw']);
      // Node n + N stands for n reached by an rw edge: only a plain edge leaves it.
      const size = plain.length;
      const twice = [
        ...plain.map((tos, number) => [...tos, ...rw[number]!.map((to) => to + size)]),
        ...plain.map((tos) => [...tos]),
      ];
      const cycle = cycleIn(twice);
      if (cycle === null) continue;
      const crossed = cycle.filter((node) => node >= size).length;
      return this.#say(crossed > 1 ? several : single, cycle.map((node) => this.#name(node % size)).join(' → '));
    }
  }

  #name(number: number): string {
    const { client, end } = this.#all[number]!;
    return `transaction ${number} of client ${client} (${end})`;
  }
}

function put<K, V>(map: Map<K, V[]>, key: K, value: V): void {
  const list = map.get(key);
  if (list === undefined) map.set(key, [value]);
  else list.push(value);
}

const same = (a: readonly number[], b: readonly number[]): boolean =>
  a.length === b.length && a.every((value, i) => value === b[i]);

/** The last of an ordered list for which it holds, as it holds for all before it. */
function lastBefore(numbers: readonly number[], holds: (number: number) => boolean): number | null {
  let [low, high] = [0, numbers.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (holds(numbers[middle]!)) low = middle + 1;
    else high = middle;
  }
  return low === 0 ? null : numbers[low - 1]!;
}

/** Nodes of a cycle, in order; null: there is none. Deep graphs: no recursion. */
function cycleIn(edges: readonly (readonly number[])[]): number[] | null {
  const state = new Uint8Array(edges.length);
  const path: number[] = [];
  const next: number[] = [];
  for (let root = 0; root < edges.length; root++) {
    if (state[root] !== 0) continue;
    path.push(root);
    next.push(0);
    state[root] = 1;
    while (path.length > 0) {
      const node = path.at(-1)!;
      const to = edges[node]![next[next.length - 1]!++];
      if (to === undefined) {
        state[node] = 2;
        path.pop();
        next.pop();
      } else if (state[to] === 1) return [...path.slice(path.indexOf(to)), to];
      else if (state[to] === 0) {
        state[to] = 1;
        path.push(to);
        next.push(0);
      }
    }
  }
  return null;
}
