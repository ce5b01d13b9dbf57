/**
 * Follows money from the holdings of an account, transfer by transfer in the order of time: no step goes back. All that leaves
 * the seed is tainted whole; what a holding passes on of it is said by the method:
 *
 *   haircut  in proportion to what of its balance is tainted
 *   fifo     what came first leaves first
 *   poison   all of it, once anything tainted has come
 *
 * Haircut and fifo conserve taint: a holding passes on no more than it was given. What leaves a holding beyond what is known to
 * have come counts as clean. Backwards, the same with ends and time turned round. Pure.
 */
import type { Steps } from '../../../graph/stepped-sort.ts';
import type { Transfers } from './transfers.ts';

export type TaintMethod = 'haircut' | 'poison' | 'fifo';

export interface TaintedTransfer {
  readonly transfer: number;
  readonly hop: number;
  readonly tainted: number;
  /** The tainted transfer that brought the taint first, or -1 from the seed. */
  readonly before: number;
}

export interface TaintOptions {
  readonly method: TaintMethod;
  readonly hopsMax: number;
  readonly amountMin: number;
  readonly isBackward: boolean;
}

interface Lot {
  amount: number;
  readonly isTainted: boolean;
}

interface Holding {
  /** How many of its transfers, in and out, were taken into account. */
  nextIn: number;
  nextOut: number;
  balance: number;
  tainted: number;
  lots: Lot[];
  firstLot: number;
  hop: number;
  /** The transfer that brought the taint by the fewest hops. */
  before: number;
}

/** Less than this share of an amount is a remainder of rounding. */
const least = 1e-12;
const stepsAtOnce = 1_024;

export function* taintFrom(
  transfers: Transfers,
  account: string,
  { method, hopsMax, amountMin, isBackward }: TaintOptions,
  look: (count: number) => void,
): Steps<ReadonlyMap<number, TaintedTransfer>> {
  const { count, amounts } = transfers;
  const targets = isBackward ? transfers.sources : transfers.targets;
  // The i-th transfer of a holding in the order in which it is followed.
  const outOf = (holding: number): Int32Array => (isBackward ? transfers.reaching(holding) : transfers.leaving(holding));
  const intoOf = (holding: number): Int32Array => (isBackward ? transfers.leaving(holding) : transfers.reaching(holding));
  const ith = (list: Int32Array, i: number): number => (isBackward ? list[list.length - 1 - i]! : list[i]!);
  const stepOf = (transfer: number): number => (isBackward ? count - 1 - transfer : transfer);

  const tainted = new Map<number, TaintedTransfer>();
  const seeds = new Set(transfers.holdingsOf(account));
  const holdings = new Map<number, Holding>();
  const open = new StepHeap();
  for (const seed of seeds) {
    const out = outOf(seed);
    if (out.length > 0) open.push(stepOf(ith(out, 0)), seed);
  }
  const seedPlaces = new Map([...seeds].map((seed) => [seed, 0]));
  let work = 0;
  for (let source = open.pop(); source !== null; source = open.pop()) {
    if (++work % stepsAtOnce === 0) yield;
    const out = outOf(source);
    let transfer: number;
    let taint: number;
    let hop: number;
    let before: number;
    if (seeds.has(source)) {
      const seedIndex = seedPlaces.get(source)!;
      transfer = ith(out, seedIndex);
      [taint, hop, before] = [amounts[transfer]!, 1, -1];
      seedPlaces.set(source, seedIndex + 1);
      if (seedIndex + 1 < out.length) open.push(stepOf(ith(out, seedIndex + 1)), source);
    } else {
      const state = holdings.get(source)!;
      const into = intoOf(source);
      transfer = ith(out, state.nextOut);
      // Everything that came in before this one leaves: its taint is known, as whatever is earlier was followed.
      for (; state.nextIn < into.length && stepOf(ith(into, state.nextIn)) < stepOf(transfer); state.nextIn++) {
        const incoming = ith(into, state.nextIn);
        receive(state, amounts[incoming]!, tainted.get(incoming)?.tainted ?? 0, method);
        look(1);
      }
      state.nextOut++;
      taint = spend(state, amounts[transfer]!, method);
      [hop, before] = [state.hop + 1, state.before];
      const isOver = method !== 'poison' && state.tainted <= least && state.nextIn >= into.length;
      if (state.nextOut < out.length && !isOver) open.push(stepOf(ith(out, state.nextOut)), source);
    }
    look(2);
    const isFollowed = taint > least * amounts[transfer]! && amounts[transfer]! >= amountMin && hop <= hopsMax;
    if (!isFollowed) continue;
    tainted.set(transfer, { transfer, hop, tainted: taint, before });
    const target = targets[transfer]!;
    if (seeds.has(target) || hop === hopsMax) continue;
    const reached = holdings.get(target);
    if (reached !== undefined) {
      if (hop < reached.hop) {
        reached.hop = hop;
        reached.before = transfer;
      }
      continue;
    }
    const state: Holding = { nextIn: 0, nextOut: 0, balance: 0, tainted: 0, lots: [], firstLot: 0, hop, before: transfer };
    holdings.set(target, state);
    settleUntil(target, state, transfer);
  }
  return tainted;

  /** Brings a holding that is reached for the first time to the transfer that reaches it. */
  function settleUntil(holding: number, state: Holding, transfer: number): void {
    const [out, into] = [outOf(holding), intoOf(holding)];
    const step = stepOf(transfer);
    for (; state.nextOut < out.length && stepOf(ith(out, state.nextOut)) <= step; state.nextOut++) {
      const leaving = ith(out, state.nextOut);
      for (; state.nextIn < into.length && stepOf(ith(into, state.nextIn)) < stepOf(leaving); state.nextIn++) {
        const incoming = ith(into, state.nextIn);
        receive(state, amounts[incoming]!, tainted.get(incoming)?.tainted ?? 0, method);
      }
      spend(state, amounts[leaving]!, method);
      look(1);
    }
    if (state.nextOut < out.length) open.push(stepOf(ith(out, state.nextOut)), holding);
  }
}

function receive(state: Holding, amount: number, taint: number, method: TaintMethod): void {
  state.balance += amount;
  state.tainted += taint;
  if (method !== 'fifo') return;
  if (taint > 0) state.lots.push({ amount: taint, isTainted: true });
  if (amount - taint > 0) state.lots.push({ amount: amount - taint, isTainted: false });
}

/** Gives how much of what leaves is tainted. */
function spend(state: Holding, amount: number, method: TaintMethod): number {
  if (method === 'poison') return state.tainted > 0 ? amount : 0;
  let taint = 0;
  if (method === 'haircut') {
    taint = state.tainted * Math.min(1, amount / Math.max(state.balance, amount));
  } else {
    for (let left = amount; left > 0 && state.firstLot < state.lots.length; ) {
      const lot = state.lots[state.firstLot]!;
      const part = Math.min(left, lot.amount);
      if (lot.isTainted) taint += part;
      lot.amount -= part;
      left -= part;
      if (lot.amount <= 0) state.firstLot++;
    }
  }
  state.balance = Math.max(0, state.balance - amount);
  state.tainted = Math.max(0, state.tainted - taint);
  return taint;
}

/** Holdings by the step of their next transfer, the earliest first. */
class StepHeap {
  readonly #steps: number[] = [];
  readonly #holdings: number[] = [];

  push(step: number, holding: number): void {
    let i = this.#steps.push(step) - 1;
    this.#holdings.push(holding);
    for (let parent = (i - 1) >> 1; i > 0 && this.#steps[parent]! > step; parent = (i - 1) >> 1) {
      this.#swap(i, parent);
      i = parent;
    }
  }

  pop(): number | null {
    if (this.#steps.length === 0) return null;
    this.#swap(0, this.#steps.length - 1);
    this.#steps.pop();
    const holding = this.#holdings.pop()!;
    for (let i = 0; ; ) {
      let child = 2 * i + 1;
      if (child >= this.#steps.length) break;
      if (child + 1 < this.#steps.length && this.#steps[child + 1]! < this.#steps[child]!) child++;
      if (this.#steps[child]! >= this.#steps[i]!) break;
      this.#swap(i, child);
      i = child;
    }
    return holding;
  }

  #swap(i: number, j: number): void {
    [this.#steps[i], this.#steps[j]] = [this.#steps[j]!, this.#steps[i]!];
    [this.#holdings[i], this.#holdings[j]] = [this.#holdings[j]!, this.#holdings[i]!];
  }
}
