/**
 * Sends the messages of one gRPC answer at its client's pace. Invariants: no message is made while its connection is full, for a
 * client that is gone, for a caller who is no longer admitted, or of rows that were erased since.
 */
import type { ServerWritableStream } from '@grpc/grpc-js';
import { ServiceError } from '../../errors.ts';
import type { Caller } from '../../governance/caller.ts';
import type { DoorDependencies } from '../shared/door-dependencies.ts';
import { checkCaller, checkErased, type Overtaken, stalledMs, watchStream } from '../shared/stream-lease.ts';
import type { RequestTurns } from '../shared/request-turns.ts';
import type { UnsentMessages } from './unsent-messages.ts';
import type { SentMessage } from './values.ts';

/** One for all: an error made for each of a thousand calls that end at once would take longer than their ends. */
export const clientGone = new ServiceError('REL_CANCELLED', 'the client has gone, or its deadline has passed');

const sliceMs = 2;

/** Bytes that a call may leave to its stream when it ends: a small answer goes out together with its status. */
const lastUnsentMax = 64 << 10;

/** Its columns, a message of rows, its totals, and that nothing is behind them. */
const togetherMax = 4;
const togetherMs = 1;

export interface SenderDependencies extends DoorDependencies {
  readonly outboxes: UnsentMessages;
  readonly sending: RequestTurns;
}

/** The call that is answered: its caller, and a signal that aborts when the client is gone. */
export interface AnsweredCall {
  readonly caller: Caller;
  readonly signal: AbortSignal;
}

export interface SentAnswer {
  readonly stream: ServerWritableStream<unknown, unknown>;
  /** The answer that the messages are made of. */
  readonly answer: Overtaken;
}

export class MessageSender {
  readonly #parts: SenderDependencies;
  readonly #call: AnsweredCall;
  readonly #sent: SentAnswer;
  readonly #peer: string;
  #refused: { readonly error: unknown } | null = null;
  /** Ends the watch over the answer; null before the first pause. */
  #watch: AbortController | null = null;
  /** Infinity while the answer does not wait for its client. */
  #waitingSinceMs = Infinity;
  #wake = (): void => undefined;
  /** The stream counts messages, whatever their size, and calls back for none of a call that was taken back. */
  #unsentBytes = 0;
  #isOver = false;

  constructor(parts: SenderDependencies, call: AnsweredCall, sent: SentAnswer) {
    this.#parts = parts;
    this.#call = call;
    this.#sent = sent;
    this.#peer = sent.stream.getPeer();
  }

  /** Throws the error with which a new call would be refused, or that rows were erased meanwhile. */
  async sendAll(messages: Iterable<SentMessage>): Promise<void> {
    const { clock, yieldTurn, sending } = this.#parts;
    const source = messages[Symbol.iterator]();
    try {
      let sliceStart = clock.monotonicMs();
      for (;;) {
        await this.#waitForRoom();
        // Made once there is room, since what waits would be held, and in turn: each of a thousand calls may make its first at once.
        if (await sending.run(() => this.#sendSome(source))) break;
        if (clock.monotonicMs() - sliceStart <= sliceMs) continue;
        this.#watchAnswer();
        await yieldTurn();
        sliceStart = clock.monotonicMs();
      }
      while (this.#unsentBytes > lastUnsentMax) {
        await this.#waitForClient(null);
        this.#checkGone();
      }
      this.#checkRefused();
    } finally {
      source.return?.();
      this.#watch?.abort(null);
      this.#isOver = true;
      if (this.#unsentBytes > 0) this.#parts.outboxes.remove(this.#peer, this.#unsentBytes);
    }
  }

  async #waitForRoom(): Promise<void> {
    const { outboxes } = this.#parts;
    this.#checkRefused();
    for (let room = outboxes.room(this.#peer); room !== null; room = outboxes.room(this.#peer)) {
      await this.#waitForClient(room);
      this.#checkGone();
    }
    this.#checkGone();
  }

  /** True once there are no more messages. The parts of a small answer leave in one turn. */
  #sendSome(source: Iterator<SentMessage>): boolean {
    const { clock, outboxes } = this.#parts;
    checkErased(this.#sent.answer);
    const sinceMs = clock.monotonicMs();
    let left = lastUnsentMax;
    for (let i = 0; i < togetherMax && left > 0 && clock.monotonicMs() - sinceMs < togetherMs; i++) {
      const next = source.next();
      if (next.done === true) return true;
      const { message, bytes } = next.value;
      left -= bytes;
      this.#unsentBytes += bytes;
      outboxes.add(this.#peer, bytes);
      this.#sent.stream.write(message, () => this.#onTaken(bytes));
    }
    return false;
  }

  #onTaken(bytes: number): void {
    if (this.#isOver) return;
    this.#unsentBytes -= bytes;
    this.#parts.outboxes.remove(this.#peer, bytes);
    this.#wake();
  }

  async #waitForClient(ready: Promise<unknown> | null): Promise<void> {
    this.#watchAnswer();
    this.#waitingSinceMs = this.#parts.clock.monotonicMs();
    await new Promise<void>((resolve) => {
      this.#wake = resolve;
      void ready?.then(() => resolve());
    });
    this.#waitingSinceMs = Infinity;
    this.#wake = () => undefined;
    this.#checkRefused();
  }

  /** From the first pause on: what leaves at once is over before anything can change. */
  #watchAnswer(): void {
    if (this.#watch !== null) return;
    const { answer } = this.#sent;
    this.#watch = new AbortController();
    this.#call.signal.addEventListener('abort', () => this.#wake(), { signal: this.#watch.signal });
    const check = (): void => {
      checkCaller(this.#parts, this.#call.caller);
      checkErased(answer);
      if (this.#parts.clock.monotonicMs() - this.#waitingSinceMs >= stalledMs)
        throw new ServiceError('REL_TIMEOUT', 'the answer was not taken in time');
    };
    void watchStream(this.#parts, check, this.#watch.signal, (error) => {
      this.#refused = { error };
      this.#wake();
    });
  }

  #checkRefused(): void {
    if (this.#refused !== null) throw this.#refused.error;
  }

  #checkGone(): void {
    if (this.#call.signal.aborted) throw clientGone;
  }
}
