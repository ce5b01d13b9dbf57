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

const sendSliceMs = 2;

/** Bytes that a call may leave to its stream when it ends: a small answer goes out together with its status. */
const lastUnsentBytesMax = 64 << 10;

/** Its columns, a message of rows, its totals, and that nothing is behind them. */
const messagesTogetherMax = 4;
const messagesTogetherMs = 1;

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
  readonly #senderParts: SenderDependencies;
  readonly #sentCall: AnsweredCall;
  readonly #sent: SentAnswer;
  readonly #callPeer: string;
  #streamRefusal: { readonly error: unknown } | null = null;
  /** Ends the watch over the answer; null before the first pause. */
  #answerWatch: AbortController | null = null;
  /** Infinity while the answer does not wait for its client. */
  #waitingForClientMs = Infinity;
  #wakeSender = (): void => undefined;
  /** The stream counts messages, whatever their size, and calls back for none of a call that was taken back. */
  #unsentMessageBytes = 0;
  #isSendingOver = false;

  constructor(senderParts: SenderDependencies, sentCall: AnsweredCall, sent: SentAnswer) {
    this.#senderParts = senderParts;
    this.#sentCall = sentCall;
    this.#sent = sent;
    this.#callPeer = sent.stream.getPeer();
  }

  /** Throws the error with which a new call would be refused, or that rows were erased meanwhile. */
  async sendAll(sentMessages: Iterable<SentMessage>): Promise<void> {
    const { clock, yieldTurn, sending } = this.#senderParts;
    const messageSource = sentMessages[Symbol.iterator]();
    try {
      let sendSliceStart = clock.monotonicMs();
      for (;;) {
        await this.#waitForOutboxRoom();
        // Made once there is room, since what waits would be held, and in turn: each of a thousand calls may make its first at once.
        if (await sending.run(() => this.#sendMessages(messageSource))) break;
        if (clock.monotonicMs() - sendSliceStart <= sendSliceMs) continue;
        this.#watchAnswer();
        await yieldTurn();
        sendSliceStart = clock.monotonicMs();
      }
      while (this.#unsentMessageBytes > lastUnsentBytesMax) {
        await this.#waitForClient(null);
        this.#checkClientGone();
      }
      this.#checkStreamRefused();
    } finally {
      messageSource.return?.();
      this.#answerWatch?.abort(null);
      this.#isSendingOver = true;
      if (this.#unsentMessageBytes > 0) this.#senderParts.outboxes.remove(this.#callPeer, this.#unsentMessageBytes);
    }
  }

  async #waitForOutboxRoom(): Promise<void> {
    const { outboxes } = this.#senderParts;
    this.#checkStreamRefused();
    for (let outboxRoom = outboxes.room(this.#callPeer); outboxRoom !== null; outboxRoom = outboxes.room(this.#callPeer)) {
      await this.#waitForClient(outboxRoom);
      this.#checkClientGone();
    }
    this.#checkClientGone();
  }

  /** True once there are no more messages. The parts of a small answer leave in one turn. */
  #sendMessages(messageSource: Iterator<SentMessage>): boolean {
    const { clock, outboxes } = this.#senderParts;
    checkErased(this.#sent.answer);
    const sendingSinceMs = clock.monotonicMs();
    let bytesLeft = lastUnsentBytesMax;
    for (let i = 0; i < messagesTogetherMax && bytesLeft > 0 && clock.monotonicMs() - sendingSinceMs < messagesTogetherMs; i++) {
      const nextMessage = messageSource.next();
      if (nextMessage.done === true) return true;
      const { message: sentMessage, bytes: messageBytes } = nextMessage.value;
      bytesLeft -= messageBytes;
      this.#unsentMessageBytes += messageBytes;
      outboxes.add(this.#callPeer, messageBytes);
      this.#sent.stream.write(sentMessage, () => this.#onMessageTaken(messageBytes));
    }
    return false;
  }

  #onMessageTaken(takenBytes: number): void {
    if (this.#isSendingOver) return;
    this.#unsentMessageBytes -= takenBytes;
    this.#senderParts.outboxes.remove(this.#callPeer, takenBytes);
    this.#wakeSender();
  }

  async #waitForClient(outboxReady: Promise<unknown> | null): Promise<void> {
    this.#watchAnswer();
    this.#waitingForClientMs = this.#senderParts.clock.monotonicMs();
    await new Promise<void>((wakeSender) => {
      this.#wakeSender = wakeSender;
      void outboxReady?.then(() => wakeSender());
    });
    this.#waitingForClientMs = Infinity;
    this.#wakeSender = () => undefined;
    this.#checkStreamRefused();
  }

  /** From the first pause on: what leaves at once is over before anything can change. */
  #watchAnswer(): void {
    if (this.#answerWatch !== null) return;
    const { answer: sentAnswer } = this.#sent;
    this.#answerWatch = new AbortController();
    this.#sentCall.signal.addEventListener('abort', () => this.#wakeSender(), { signal: this.#answerWatch.signal });
    const checkSentAnswer = (): void => {
      checkCaller(this.#senderParts, this.#sentCall.caller);
      checkErased(sentAnswer);
      if (this.#senderParts.clock.monotonicMs() - this.#waitingForClientMs >= stalledMs)
        throw new ServiceError('REL_TIMEOUT', 'the answer was not taken in time');
    };
    void watchStream(this.#senderParts, checkSentAnswer, this.#answerWatch.signal, (watchError) => {
      this.#streamRefusal = { error: watchError };
      this.#wakeSender();
    });
  }

  #checkStreamRefused(): void {
    if (this.#streamRefusal !== null) throw this.#streamRefusal.error;
  }

  #checkClientGone(): void {
    if (this.#sentCall.signal.aborted) throw clientGone;
  }
}
