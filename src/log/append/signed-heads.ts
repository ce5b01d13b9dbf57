/**
 * Signed heads of the log: seals among its entries, once nothing was written for a while, and the checkpoint file beside it. A
 * head that was handed out is in that file first: no later recovery may cut entries that a holder of the head can prove.
 */
import type { Clock } from '../../clock.ts';
import { assert } from '../../errors.ts';
import { finalOutcome } from './full-disk.ts';
import type { Disk } from '../disk/disk.ts';
import type { EntryBody } from '../entries/entry.ts';
import type { ChainLinker } from './chain-linker.ts';
import type { HashChain } from '../files/hash-chain.ts';
import type { LogWriter } from '../files/log-writer.ts';
import type { GroupCommit } from './group-commit.ts';
import type { Keyring } from '../keys/keys.ts';
import type { LogState } from './log-state.ts';
import type { Appended, SignedHead } from '../log-store.ts';
import { checkpointPath } from '../recovery.ts';
import { signCheckpoint } from '../tree/checkpoint-note.ts';
import type { TreeHead } from '../tree/merkle-tree.ts';

export interface SignedHeadsOptions {
  readonly disk: Disk;
  readonly clock: Clock;
  readonly logDirectory: string;
  readonly origin: string;
  readonly keyring: Keyring;
  /** A seal follows so long after the last write; 0: only on close. */
  readonly sealIdleMs: number;
  readonly state: LogState;
  readonly linker: ChainLinker;
  readonly writer: LogWriter;
  readonly commits: GroupCommit;
  /** Entries that are placed. */
  readonly leaves: () => number;
  /** Root of the tree over the first leaves. */
  readonly root: (leaves: number) => Uint8Array;
  readonly append: (body: EntryBody) => Appended;
}

export class SignedHeads {
  readonly #options: SignedHeadsOptions;
  #sealedLeaves: number;
  /** The same before the last seal: that one may not be written yet. */
  #sealedBefore: number;
  #seals: number;
  /** Newest head in the checkpoint file. */
  #stored: SignedHead;
  #lastAppended: Pick<Appended, 'written'> | null = null;
  #lastWriteMs = 0;
  #sealTimer = false;
  /** The log has begun, and callers hear of a lack of room. */
  #opened = false;
  #sealing: Promise<void> = Promise.resolve();

  constructor(options: SignedHeadsOptions, { sealed, seals }: Pick<HashChain, 'sealed' | 'seals'>) {
    this.#options = options;
    this.#sealedLeaves = this.#sealedBefore = sealed;
    this.#seals = seals;
    this.#stored = this.sign(options.linker.head());
  }

  /** Begins after the replay, of which every entry is durable: writes the checkpoint file, unless it covers that many leaves. */
  async open(checkpointSize: number): Promise<void> {
    const head = this.#options.linker.head();
    if (head.size > checkpointSize) await (this.#sealing = this.#store(this.sign(head)));
    this.#opened = true;
    if (head.size > this.#sealedLeaves) this.#sealWhenIdle();
  }

  /** Called after each append to the log. */
  onAppended(appended: Appended): void {
    this.#lastAppended = appended;
    this.#sealWhenIdle();
  }

  async seal(): Promise<void> {
    const { state } = this.#options;
    if (!state.isSealable) throw state.refusal();
    // One at a time: a seal's checkpoint is in place before the next seal is written.
    const done = this.#sealing.then(() => this.#seal());
    this.#sealing = done.catch(() => undefined);
    await state.room.unlessShort(done);
  }

  /** Leaves that seals cover, and how many seals there are, among the first `written` leaves: at most the last is not. */
  sealsWithin(written: number): Pick<HashChain, 'sealed' | 'seals'> {
    if (this.#sealedLeaves <= written) return { sealed: this.#sealedLeaves, seals: this.#seals };
    return { sealed: this.#sealedBefore, seals: this.#seals - 1 };
  }

  /** The newest stored head; a new one where it covers fewer leaves. */
  async headOver(leaves: number): Promise<SignedHead> {
    const { state, writer, root } = this.#options;
    if (this.#stored.size >= leaves) return this.#stored;
    if (state.isFull) throw state.refusal();
    assert(leaves <= this.#options.leaves(), 'a head covers entries that are there');
    if (writer.durableLeaves < leaves) await this.seal();
    const signing = this.#sealing.then(async () => {
      const size = writer.durableLeaves;
      if (this.#stored.size >= leaves) return;
      if (!state.isSealable) throw state.refusal();
      await this.#store(this.sign({ size, root: root(size) }));
    });
    this.#sealing = signing.catch(() => undefined);
    await state.room.unlessShort(signing);
    return this.#stored;
  }

  sign(head: TreeHead): SignedHead {
    const { origin, keyring } = this.#options;
    return { ...head, note: signCheckpoint(origin, head, keyring.signer) };
  }

  /** One timer at a time: it looks again when something was written while it slept. */
  #sealWhenIdle(): void {
    const { clock, sealIdleMs, state, leaves } = this.#options;
    this.#lastWriteMs = clock.monotonicMs();
    if (this.#sealTimer || sealIdleMs === 0) return;
    this.#sealTimer = true;
    void this.#waitAndSeal(sealIdleMs).finally(() => {
      this.#sealTimer = false;
      // Entries may have been written during the seal: they need a seal of their own.
      if (state.isOpen && leaves() > this.#sealedLeaves) this.#sealWhenIdle();
    });
  }

  async #waitAndSeal(sealIdleMs: number): Promise<void> {
    const { clock, state, commits } = this.#options;
    for (let wait = sealIdleMs; wait > 0; wait = sealIdleMs - (clock.monotonicMs() - this.#lastWriteMs)) {
      await clock.sleep(wait, state.signal);
      if (state.signal.aborted) return;
      commits.syncSoon();
    }
    await commits.idle();
    // A failure to seal has already failed the log, which reports it.
    if (state.isOpen) await this.seal().catch(() => undefined);
  }

  async #seal(): Promise<void> {
    const { state, linker, leaves, append } = this.#options;
    // Waits for pending appends first, so that only later ones can hold up the turn.
    if (linker.isBehind) await this.#lastAppended?.written.catch(() => undefined);
    if (state.hasFailed || state.isFull) throw state.refusal();
    if (leaves() === this.#sealedLeaves) return;
    const head = linker.head();
    const appended = append({ kind: 'seal', treeSize: head.size, checkpoint: this.sign(head).note });
    // The checkpoint beside the log covers the seal as well, so that no durable entry can be missed.
    const covering = this.sign(linker.head());
    this.#sealedBefore = this.#sealedLeaves;
    this.#sealedLeaves = covering.size;
    this.#seals++;
    // The checkpoint is in place before the next seal is written, however long both wait for room.
    await finalOutcome(appended);
    await this.#store(covering);
  }

  async #store(head: SignedHead): Promise<void> {
    const { disk, logDirectory, state, commits } = this.#options;
    for (;;) {
      try {
        await disk.replaceFile(checkpointPath(logDirectory), Buffer.from(head.note));
        break;
      } catch (cause) {
        // No room: the one before is there still, and no seal follows until this one is in its place.
        if (!this.#opened || !(await state.room.isShort('head', cause))) {
          commits.fail(cause);
          throw state.refusal();
        }
        await state.room.wait();
      }
    }
    state.room.clearShortage('head');
    this.#stored = head;
  }
}
