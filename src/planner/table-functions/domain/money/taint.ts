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

interface TaintLot {
  amount: number;
  readonly isTainted: boolean;
}

interface TaintedHolding {
  /** How many of its transfers, in and out, were taken into account. */
  nextIn: number;
  nextOut: number;
  balance: number;
  tainted: number;
  lots: TaintLot[];
  firstLot: number;
  hop: number;
  /** The transfer that brought the taint by the fewest hops. */
  before: number;
}

/** Less than this share of an amount is a remainder of rounding. */
const leastTaint = 1e-12;
const taintStepsAtOnce = 1_024;

export function* taintFrom(
  transfers: Transfers,
  account: string,
  { method, hopsMax, amountMin, isBackward }: TaintOptions,
  countLooks: (count: number) => void,
): Steps<ReadonlyMap<number, TaintedTransfer>> {
  const { count, amounts } = transfers;
  const targetHoldings = isBackward ? transfers.sources : transfers.targets;
  // The i-th transfer of a holding in the order in which it is followed.
  const outOf = (holding: number): Int32Array => (isBackward ? transfers.reaching(holding) : transfers.leaving(holding));
  const intoOf = (holding: number): Int32Array => (isBackward ? transfers.leaving(holding) : transfers.reaching(holding));
  const transferAt = (transferList: Int32Array, i: number): number =>
    isBackward ? transferList[transferList.length - 1 - i]! : transferList[i]!;
  const stepOf = (transfer: number): number => (isBackward ? count - 1 - transfer : transfer);

  const tainted = new Map<number, TaintedTransfer>();
  const seedHoldings = new Set(transfers.holdingsOf(account));
  const taintedHoldings = new Map<number, TaintedHolding>();
  const openHoldings = new TransferStepHeap();
  for (const seedHolding of seedHoldings) {
    const outgoingTransfers = outOf(seedHolding);
    if (outgoingTransfers.length > 0) openHoldings.push(stepOf(transferAt(outgoingTransfers, 0)), seedHolding);
  }
  const nextSeedTransfers = new Map([...seedHoldings].map((seed) => [seed, 0]));
  let taintWork = 0;
  for (let sourceHolding = openHoldings.pop(); sourceHolding !== null; sourceHolding = openHoldings.pop()) {
    if (++taintWork % taintStepsAtOnce === 0) yield;
    const outgoingTransfers = outOf(sourceHolding);
    let spentTransfer: number;
    let transferTaint: number;
    let transferHop: number;
    let transferBefore: number;
    if (seedHoldings.has(sourceHolding)) {
      const seedIndex = nextSeedTransfers.get(sourceHolding)!;
      spentTransfer = transferAt(outgoingTransfers, seedIndex);
      [transferTaint, transferHop, transferBefore] = [amounts[spentTransfer]!, 1, -1];
      nextSeedTransfers.set(sourceHolding, seedIndex + 1);
      if (seedIndex + 1 < outgoingTransfers.length)
        openHoldings.push(stepOf(transferAt(outgoingTransfers, seedIndex + 1)), sourceHolding);
    } else {
      const holdingState = taintedHoldings.get(sourceHolding)!;
      const incomingTransfers = intoOf(sourceHolding);
      spentTransfer = transferAt(outgoingTransfers, holdingState.nextOut);
      // Everything that came in before this one leaves: its taint is known, as whatever is earlier was followed.
      for (
        ;
        holdingState.nextIn < incomingTransfers.length &&
        stepOf(transferAt(incomingTransfers, holdingState.nextIn)) < stepOf(spentTransfer);
        holdingState.nextIn++
      ) {
        const incomingTransfer = transferAt(incomingTransfers, holdingState.nextIn);
        receiveTaint(holdingState, amounts[incomingTransfer]!, tainted.get(incomingTransfer)?.tainted ?? 0, method);
        countLooks(1);
      }
      holdingState.nextOut++;
      transferTaint = spendTaint(holdingState, amounts[spentTransfer]!, method);
      [transferHop, transferBefore] = [holdingState.hop + 1, holdingState.before];
      const isTaintSpent =
        method !== 'poison' && holdingState.tainted <= leastTaint && holdingState.nextIn >= incomingTransfers.length;
      if (holdingState.nextOut < outgoingTransfers.length && !isTaintSpent)
        openHoldings.push(stepOf(transferAt(outgoingTransfers, holdingState.nextOut)), sourceHolding);
    }
    countLooks(2);
    const isTransferFollowed =
      transferTaint > leastTaint * amounts[spentTransfer]! && amounts[spentTransfer]! >= amountMin && transferHop <= hopsMax;
    if (!isTransferFollowed) continue;
    tainted.set(spentTransfer, { transfer: spentTransfer, hop: transferHop, tainted: transferTaint, before: transferBefore });
    const targetHolding = targetHoldings[spentTransfer]!;
    if (seedHoldings.has(targetHolding) || transferHop === hopsMax) continue;
    const reachedHolding = taintedHoldings.get(targetHolding);
    if (reachedHolding !== undefined) {
      if (transferHop < reachedHolding.hop) {
        reachedHolding.hop = transferHop;
        reachedHolding.before = spentTransfer;
      }
      continue;
    }
    const state: TaintedHolding = {
      nextIn: 0,
      nextOut: 0,
      balance: 0,
      tainted: 0,
      lots: [],
      firstLot: 0,
      hop: transferHop,
      before: spentTransfer,
    };
    taintedHoldings.set(targetHolding, state);
    settleUntil(targetHolding, state, spentTransfer);
  }
  return tainted;

  /** Brings a holding that is reached for the first time to the transfer that reaches it. */
  function settleUntil(holding: number, settledHolding: TaintedHolding, transfer: number): void {
    const [outgoingTransfers, incomingTransfers] = [outOf(holding), intoOf(holding)];
    const transferStep = stepOf(transfer);
    for (
      ;
      settledHolding.nextOut < outgoingTransfers.length &&
      stepOf(transferAt(outgoingTransfers, settledHolding.nextOut)) <= transferStep;
      settledHolding.nextOut++
    ) {
      const leavingTransfer = transferAt(outgoingTransfers, settledHolding.nextOut);
      for (
        ;
        settledHolding.nextIn < incomingTransfers.length &&
        stepOf(transferAt(incomingTransfers, settledHolding.nextIn)) < stepOf(leavingTransfer);
        settledHolding.nextIn++
      ) {
        const incomingTransfer = transferAt(incomingTransfers, settledHolding.nextIn);
        receiveTaint(settledHolding, amounts[incomingTransfer]!, tainted.get(incomingTransfer)?.tainted ?? 0, method);
      }
      spendTaint(settledHolding, amounts[leavingTransfer]!, method);
      countLooks(1);
    }
    if (settledHolding.nextOut < outgoingTransfers.length)
      openHoldings.push(stepOf(transferAt(outgoingTransfers, settledHolding.nextOut)), holding);
  }
}

function receiveTaint(
  receivingHolding: TaintedHolding,
  receivedAmount: number,
  receivedTaint: number,
  method: TaintMethod,
): void {
  receivingHolding.balance += receivedAmount;
  receivingHolding.tainted += receivedTaint;
  if (method !== 'fifo') return;
  if (receivedTaint > 0) receivingHolding.lots.push({ amount: receivedTaint, isTainted: true });
  if (receivedAmount - receivedTaint > 0)
    receivingHolding.lots.push({ amount: receivedAmount - receivedTaint, isTainted: false });
}

/** Gives how much of what leaves is tainted. */
function spendTaint(spendingHolding: TaintedHolding, spentAmount: number, method: TaintMethod): number {
  if (method === 'poison') return spendingHolding.tainted > 0 ? spentAmount : 0;
  let spentTaint = 0;
  if (method === 'haircut') {
    spentTaint = spendingHolding.tainted * Math.min(1, spentAmount / Math.max(spendingHolding.balance, spentAmount));
  } else {
    for (let amountLeft = spentAmount; amountLeft > 0 && spendingHolding.firstLot < spendingHolding.lots.length; ) {
      const spentLot = spendingHolding.lots[spendingHolding.firstLot]!;
      const lotPart = Math.min(amountLeft, spentLot.amount);
      if (spentLot.isTainted) spentTaint += lotPart;
      spentLot.amount -= lotPart;
      amountLeft -= lotPart;
      if (spentLot.amount <= 0) spendingHolding.firstLot++;
    }
  }
  spendingHolding.balance = Math.max(0, spendingHolding.balance - spentAmount);
  spendingHolding.tainted = Math.max(0, spendingHolding.tainted - spentTaint);
  return spentTaint;
}

/** Holdings by the step of their next transfer, the earliest first. */
class TransferStepHeap {
  readonly #heapSteps: number[] = [];
  readonly #heapHoldings: number[] = [];

  push(transferStep: number, pushedHolding: number): void {
    let i = this.#heapSteps.push(transferStep) - 1;
    this.#heapHoldings.push(pushedHolding);
    for (let parentSlot = (i - 1) >> 1; i > 0 && this.#heapSteps[parentSlot]! > transferStep; parentSlot = (i - 1) >> 1) {
      this.#swapHeaped(i, parentSlot);
      i = parentSlot;
    }
  }

  pop(): number | null {
    if (this.#heapSteps.length === 0) return null;
    this.#swapHeaped(0, this.#heapSteps.length - 1);
    this.#heapSteps.pop();
    const firstHolding = this.#heapHoldings.pop()!;
    for (let i = 0; ; ) {
      let childSlot = 2 * i + 1;
      if (childSlot >= this.#heapSteps.length) break;
      if (childSlot + 1 < this.#heapSteps.length && this.#heapSteps[childSlot + 1]! < this.#heapSteps[childSlot]!) childSlot++;
      if (this.#heapSteps[childSlot]! >= this.#heapSteps[i]!) break;
      this.#swapHeaped(i, childSlot);
      i = childSlot;
    }
    return firstHolding;
  }

  #swapHeaped(i: number, j: number): void {
    [this.#heapSteps[i], this.#heapSteps[j]] = [this.#heapSteps[j]!, this.#heapSteps[i]!];
    [this.#heapHoldings[i], this.#heapHoldings[j]] = [this.#heapHoldings[j]!, this.#heapHoldings[i]!];
  }
}
