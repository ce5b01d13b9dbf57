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
  readonly #headOptions: SignedHeadsOptions;
  #sealedLeaves: number;
  /** The same before the last seal: that one may not be written yet. */
  #previousSealedLeaves: number;
  #sealEntryCount: number;
  /** Newest head in the checkpoint file. */
  #storedHead: SignedHead;
  #lastAppend: Pick<Appended, 'written'> | null = null;
  #lastWriteMs = 0;
  #hasSealTimer = false;
  /** The log has begun, and callers hear of a lack of room. */
  #isOpened = false;
  #headSealing: Promise<void> = Promise.resolve();

  constructor(headOptions: SignedHeadsOptions, { sealed: sealedLeaves, seals: sealCount }: Pick<HashChain, 'sealed' | 'seals'>) {
    this.#headOptions = headOptions;
    this.#sealedLeaves = this.#previousSealedLeaves = sealedLeaves;
    this.#sealEntryCount = sealCount;
    this.#storedHead = this.sign(headOptions.linker.head());
  }

  /** Begins after the replay, of which every entry is durable: writes the checkpoint file, unless it covers that many leaves. */
  async open(checkpointSize: number): Promise<void> {
    const treeHead = this.#headOptions.linker.head();
    if (treeHead.size > checkpointSize) await (this.#headSealing = this.#storeHead(this.sign(treeHead)));
    this.#isOpened = true;
    if (treeHead.size > this.#sealedLeaves) this.#sealWhenIdle();
  }

  /** Called after each append to the log. */
  onAppended(appended: Appended): void {
    this.#lastAppend = appended;
    this.#sealWhenIdle();
  }

  async seal(): Promise<void> {
    const { state: logState } = this.#headOptions;
    if (!logState.isSealable) throw logState.refusal();
    // One at a time: a seal's checkpoint is in place before the next seal is written.
    const sealDone = this.#headSealing.then(() => this.#appendSeal());
    this.#headSealing = sealDone.catch(() => undefined);
    await logState.room.unlessShort(sealDone);
  }

  /** Leaves that seals cover, and how many seals there are, among the first `writtenLeaves` leaves: at most the last is not. */
  sealsWithin(writtenLeaves: number): Pick<HashChain, 'sealed' | 'seals'> {
    if (this.#sealedLeaves <= writtenLeaves) return { sealed: this.#sealedLeaves, seals: this.#sealEntryCount };
    return { sealed: this.#previousSealedLeaves, seals: this.#sealEntryCount - 1 };
  }

  /** The newest stored head; a new one where it covers fewer leaves. */
  async headOver(coveredLeaves: number): Promise<SignedHead> {
    const { state, writer: logWriter, root } = this.#headOptions;
    if (this.#storedHead.size >= coveredLeaves) return this.#storedHead;
    if (state.isFull) throw state.refusal();
    assert(coveredLeaves <= this.#headOptions.leaves(), 'a head covers entries that are there');
    if (logWriter.durableLeaves < coveredLeaves) await this.seal();
    const headSigning = this.#headSealing.then(async () => {
      const durableLeaves = logWriter.durableLeaves;
      if (this.#storedHead.size >= coveredLeaves) return;
      if (!state.isSealable) throw state.refusal();
      await this.#storeHead(this.sign({ size: durableLeaves, root: root(durableLeaves) }));
    });
    this.#headSealing = headSigning.catch(() => undefined);
    await state.room.unlessShort(headSigning);
    return this.#storedHead;
  }

  sign(treeHead: TreeHead): SignedHead {
    const { origin, keyring } = this.#headOptions;
    return { ...treeHead, note: signCheckpoint(origin, treeHead, keyring.signer) };
  }

  /** One timer at a time: it looks again when something was written while it slept. */
  #sealWhenIdle(): void {
    const { clock, sealIdleMs, state, leaves } = this.#headOptions;
    this.#lastWriteMs = clock.monotonicMs();
    if (this.#hasSealTimer || sealIdleMs === 0) return;
    this.#hasSealTimer = true;
    void this.#sealAfterIdle(sealIdleMs).finally(() => {
      this.#hasSealTimer = false;
      // Entries may have been written during the seal: they need a seal of their own.
      if (state.isOpen && leaves() > this.#sealedLeaves) this.#sealWhenIdle();
    });
  }

  async #sealAfterIdle(sealIdleMs: number): Promise<void> {
    const { clock, state, commits } = this.#headOptions;
    for (let idleWaitMs = sealIdleMs; idleWaitMs > 0; idleWaitMs = sealIdleMs - (clock.monotonicMs() - this.#lastWriteMs)) {
      await clock.sleep(idleWaitMs, state.signal);
      if (state.signal.aborted) return;
      commits.syncSoon();
    }
    await commits.idle();
    // A failure to seal has already failed the log, which reports it.
    if (state.isOpen) await this.seal().catch(() => undefined);
  }

  async #appendSeal(): Promise<void> {
    const { state: logState, linker, leaves, append } = this.#headOptions;
    // Waits for pending appends first, so that only later ones can hold up the turn.
    if (linker.isBehind) await this.#lastAppend?.written.catch(() => undefined);
    if (logState.hasFailed || logState.isFull) throw logState.refusal();
    if (leaves() === this.#sealedLeaves) return;
    const sealedHead = linker.head();
    const sealAppend = append({ kind: 'seal', treeSize: sealedHead.size, checkpoint: this.sign(sealedHead).note });
    // The checkpoint beside the log covers the seal as well, so that no durable entry can be missed.
    const coveringHead = this.sign(linker.head());
    this.#previousSealedLeaves = this.#sealedLeaves;
    this.#sealedLeaves = coveringHead.size;
    this.#sealEntryCount++;
    // The checkpoint is in place before the next seal is written, however long both wait for room.
    await finalOutcome(sealAppend);
    await this.#storeHead(coveringHead);
  }

  async #storeHead(signedHead: SignedHead): Promise<void> {
    const { disk, logDirectory, state, commits } = this.#headOptions;
    for (;;) {
      try {
        await disk.replaceFile(checkpointPath(logDirectory), Buffer.from(signedHead.note));
        break;
      } catch (storeFailure) {
        // No room: the one before is there still, and no seal follows until this one is in its place.
        if (!this.#isOpened || !(await state.room.isShort('head', storeFailure))) {
          commits.fail(storeFailure);
          throw state.refusal();
        }
        await state.room.wait();
      }
    }
    state.room.clearShortage('head');
    this.#storedHead = signedHead;
  }
}
