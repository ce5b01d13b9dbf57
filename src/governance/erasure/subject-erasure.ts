/**
 * Erasing a subject, from the question to the receipt. Source: specification, "ERASE SUBJECT", and `semantics.md`, section 4.
 *
 *   ask       may the caller? -> find, and what repeats the subject -> one turn: what came meanwhile, check, append the intent,
 *             retire the keys
 *             -> intent on disk: the rows are hidden from every caller, on any branch, at any basis; running answers begin anew
 *   run       keys destroyed -> caches let go -> derived files replaced -> scan -> completion on disk
 *   certify   the receipt, made from the log
 *
 * Invariants:
 * - Nothing is destroyed before the intent is on disk; from there on every step may be done again, so a run that is cut off at
 *   any point is gone on with by the next start (`erasure-chores.ts`) and comes to the same end.
 * - There is one run of an erasure at a time. It is an invocation of its own: its caller may go away.
 * - The subject itself is in nothing that is kept, sent or logged.
 */
import type { Clock } from '../../clock.ts';
import { assert, ServiceError } from '../../errors.ts';
import type { NoteSigner } from '../../log/tree/checkpoint-note.ts';
import type { ErasedVersions } from '../../log/entries/entry.ts';
import type { Blobs } from '../../log/blobs/blobs.ts';
import type { LogStore } from '../../log/log-store.ts';
import { hexOf } from '../../log/bytes/sha256.ts';
import { finishSteps } from '../../log/threads/stepping-job.ts';
import { sealedKeyOf } from '../../log/keys/sealed-text.ts';
import type { SubjectKeys } from '../../log/keys/subject-keys.ts';
import { formatInstant } from '../../log/values/timestamp.ts';
import { checkText, tenantOf } from '../../log/values/value.ts';
import type { ExhibitView, PathCodes } from '../../projections/access-paths.ts';
import type { Erasure, Erasures } from '../../projections/erasures/projection.ts';
import { tenantlessCaller } from '../caller.ts';
import type { GateContract, Invocation } from '../gate-contract.ts';
import type { Judgements } from '../../projections/entity-resolution/judgements.ts';
import { SubjectNames } from '../../projections/subject-names.ts';
import { textKeysOf } from '../../projections/sealed-definitions.ts';
import { beginningOf } from '../tenancy/earlier-tenant.ts';
import type { RemovedSource } from '../../projections/rows/checks/removal-entry.ts';
import type { DerivedVersions, RemovedRow } from '../../projections/rows/erasure/derived-versions.ts';
import type { RemovedKeys } from '../../projections/removed-keys/projection.ts';
import type { LiveVersionDigests } from '../../projections/rows/erasure/version-digests.ts';
import type { StoredTexts } from '../../projections/rows/erasure/stored-texts.ts';
import { LettersInARow } from '../../projections/rows/cells/text-beginnings.ts';
import type { TextSink } from '../../projections/rows/erasure/subject-texts.ts';
import type { SubjectVersions } from '../../projections/rows/erasure/subject-versions.ts';
import type { Tenants } from '../../projections/tenants/projection.ts';
import { tlogProof } from './tlog-proof.ts';
import { mayErase } from './erasure-permit.ts';
import { ErasedWords } from './erased-words.ts';
import { keysIn, type MentionDependencies, type Mentions, mentionsOf } from './subject-mentions.ts';
import { ErasureReason } from './erasure-reason.ts';
import {
  commitmentOf,
  type Envelope,
  intentText,
  receiptOf,
  type Remainder,
  type ResidualHit,
  saltOf,
  statementText,
  touchedBy,
  wordsIn,
} from './erasure-receipt.ts';
import type { KeyedTextSeals } from './text-seals.ts';
import { residualScan } from './residual-scan.ts';
import { type ScanTarget, CommitmentTarget, TextTarget } from './scan-target.ts';
import { SharedRounds } from './shared-rounds.ts';
import type { BranchesRead } from './current-branches.ts';
import type { TextStore } from './text-store.ts';

export interface ErasedState extends BranchesRead {
  readonly rows: BranchesRead['rows'] & {
    readonly scopes: PathCodes;
    /** Versions whose subject this is, in paths of the tenant, on every branch, at positions from `from` on. */
    versionsOf(tenant: string | null, subject: string, from?: number): Generator<undefined, SubjectVersions>;
    /** Finds the versions derived from a subject's versions, as far as the search has come. */
    derivedFrom(tenant: string | null, subject: string): Pick<DerivedVersions, 'find' | 'versions' | 'subjects' | 'removedKeys'>;
    /** Types of a tenant whose rows name their sources. */
    derivable(tenant: string | null): ReadonlySet<string>;
    /** Every text in cells of versions is said. */
    cellsOf(versions: readonly ErasedVersions[], say: (text: string, position: number) => void): Generator<undefined, void>;
    /** Reports keys and texts of versions. */
    textsOf(versions: readonly ErasedVersions[], textSink: TextSink): Generator<undefined, void>;
    /** Applying an erasure of these versions takes little time once this was done. */
    expectErasure(versions: readonly ErasedVersions[]): Generator<undefined, void>;
    /** The erasure that was expected is given up. */
    expectNoErasure(): void;
    /** Which versions of types stand, before and without those that are to be erased. */
    liveVersionDigests(): Pick<LiveVersionDigests, 'expect' | 'digests'>;
    /** All stored texts under these paths. */
    texts(paths: ReadonlySet<number>): Iterable<StoredTexts>;
    /** Wipes bytes that erased versions left in memory. */
    wipe(): Generator<undefined, void>;
  };
  readonly erasures: Pick<Erasures, 'find' | 'ofCommitment' | 'openErasures'>;
  readonly exhibits: { all(): Iterable<ExhibitView> };
  readonly openEntries: MentionDependencies['openEntries'];
  readonly embeddings: {
    countOf(positions: Iterable<number>): number;
    entriesOf(positions: Iterable<number>): readonly number[];
  };
  readonly judgements: Pick<Judgements, 'about'>;
  readonly views: MentionDependencies['views'];
  readonly removedKeys: MentionDependencies['removedKeys'] & Pick<RemovedKeys, 'sources'>;
  readonly tenants: Pick<Tenants, 'tenant'>;
}

export interface SubjectErasureDependencies {
  readonly gate: Pick<GateContract, 'invoke'>;
  readonly log: Pick<LogStore, 'read' | 'proofs' | 'redact'>;
  readonly state: ErasedState;
  readonly keys: Pick<SubjectKeys, 'idsOf' | 'opening' | 'retire' | 'destroy'>;
  readonly seals: KeyedTextSeals;
  /** 32 bytes, the store's own: they link a subject to its erasures. */
  readonly hmacKey: Uint8Array;
  /** Signs receipts. */
  readonly signer: NoteSigner;
  readonly derived: DerivedFiles;
  /** Bodies of objects that rest beside the log. */
  readonly bodies: Pick<Blobs, 'open'>;
  /** Copies of the log that were taken before a position and hold the rows, sealed. */
  readonly backupsBefore: (position: number) => Promise<readonly Remainder[]>;
  readonly clock: Clock;
  readonly ids: { next(): string };
  readonly yieldTurn: {
    /** Before the intent: the subject waits for the rows to go. */
    readonly soon: () => Promise<void>;
    /** A caller waits for the receipt. */
    readonly forCaller: () => Promise<void>;
    /** No caller waits. */
    readonly later: () => Promise<void>;
  };
  /** One line for the operator. */
  readonly say: (line: string) => void;
}

/** Files beside the log. */
export interface DerivedFiles {
  /** All of it is written anew from what there is now, and files of before are gone; false where that could not be done. */
  renew(): Promise<boolean>;
  /** Names of files that are there and should not be. */
  stale(): Promise<readonly string[]>;
}

export interface EraseRequest {
  readonly subject: string;
  readonly reason: string;
  /** Wait for the receipt. */
  readonly certify: boolean;
}

export interface Erased {
  readonly id: string;
  /** Versions that are hidden from every caller. */
  readonly versions: number;
  /** Completed: the scan found nothing. */
  readonly certified: boolean;
  /** Where it was asked for. */
  readonly receipt: Envelope | null;
  /** Salt of the commitment in the receipt, in hex: sent to the first requester of the subject's erasure, and never again. */
  readonly salt: string | null;
  /** Public key that verifies receipts, in hex. */
  readonly verificationKey: string;
}

interface IntendedErasure {
  readonly erasure: Erasure;
  /** Leaves of links that were found to say nothing of the subject, or stand among its mentions. */
  readonly links: ReadonlySet<number>;
}

const reasonLengthMax = 4_096;
const subjectLengthMax = 1_024;
/** Findings from before the intent, for the scan alone. */
type LookedAtLinks = Pick<IntendedErasure, 'links'>;
const noLinks: LookedAtLinks = { links: new Set() };
const completionCaretaker = tenantlessCaller('annals', 'operator', 'internal');
const erasureSliceMs = 2;
/** A shorter key names too much else to be looked for in texts. */
const subjectKeyLengthMin = 4;

export class SubjectErasure {
  readonly #erasureParts: SubjectErasureDependencies;
  readonly #textStores: TextStore[] = [];
  readonly #runningErasures = new Map<string, Promise<void>>();
  /** Each writes files of the log anew: erasures that run beside each other share them. */
  readonly #redactions: SharedRounds<number>;
  /** A caller waits for their receipt. */
  readonly #awaitedErasures = new Set<string>();
  /** Erasures with a remainder of the subject: they continue with the next request, or after a start. */
  readonly #waitingErasures = new Set<string>();
  /** Erasures that are made ready. */
  #expectedErasures = 0;
  #isClosing = false;
  #erasureSliceStartMs = 0;

  constructor(parts: SubjectErasureDependencies) {
    this.#erasureParts = parts;
    this.#redactions = new SharedRounds((positions, yieldTurn) =>
      parts.log.redact(
        [...new Set(positions)].sort((a, b) => a - b),
        yieldTurn,
      ),
    );
    // A start forgets which keys are about to go: rows that come before the erasure is gone on with are sealed under others.
    for (const { keys } of parts.state.erasures.openErasures()) parts.keys.retire(keys);
  }

  get verificationKey(): string {
    return hexOf(this.#erasureParts.signer.publicKey);
  }

  /** From here on erasures reach this store, too. */
  reach(store: TextStore): void {
    this.#textStores.push(store);
  }

  /** REL_NOT_FOUND where there is nothing to erase and nothing was erased before; REL_CONFLICT while a row is held. */
  async erase(invocation: Invocation, request: EraseRequest): Promise<Erased> {
    invocation.describe({ action: 'erase' });
    const erasePermit = invocation.erasing();
    const { subject, reason, certify } = request;
    checkEraseRequest(request);
    const { caller } = invocation;
    const tenant = tenantOf(caller.path);
    if (caller.path !== tenant) {
      throw new ServiceError('REL_ACL', 'an erasure covers the whole tenant: send it under the tenant’s own path');
    }
    const erasureSalt = saltOf(this.#erasureParts.hmacKey, tenant, subject);
    const commitment = commitmentOf(erasureSalt, subject);
    const knownErasures = this.#erasuresOf(invocation, tenant, commitment);
    const intendedErasure = await this.#intendErasure(
      invocation,
      { subject, reason, tenant, commitment, known: knownErasures.length > 0 },
      erasePermit,
    );
    const lastErasure = intendedErasure?.erasure ?? knownErasures.at(-1);
    assert(lastErasure, 'what is not known was intended');
    const erasedTypes = lastErasure.counts.map(({ type }) => type).join(',');
    invocation.describe({ rowCount: erasedVersionCount(lastErasure), ...(erasedTypes !== '' && { objectType: erasedTypes }) });

    const scanTarget = new TextTarget(subject);
    const openErasures = this.#erasuresOf(invocation, tenant, commitment).filter(({ completed }) => completed === null);
    // An earlier erasure names other mentions: only this one's own scan may skip the mentions found here.
    const findingsFor = (id: string): LookedAtLinks => (id === intendedErasure?.erasure.id ? intendedErasure : noLinks);
    if (certify) for (const { id } of openErasures) this.#awaitedErasures.add(id);
    const erasuresEnded = Promise.all(openErasures.map(({ id }) => this.#finishErasure(id, scanTarget, findingsFor(id))));
    if (certify) await erasuresEnded;
    else erasuresEnded.catch((error: unknown) => this.#sayErasureWaits(error));
    const { id, completed } = this.#erasureParts.state.erasures.find(lastErasure.id)!;
    return {
      id,
      versions: erasedVersionCount(lastErasure),
      certified: completed !== null,
      receipt: certify ? await this.receipt(id) : null,
      salt: intendedErasure !== null && knownErasures.length === 0 ? hexOf(erasureSalt) : null,
      verificationKey: this.verificationKey,
    };
  }

  /** The receipt of an erasure that was completed. */
  async receipt(id: string): Promise<Envelope> {
    const erasure = this.#erasureParts.state.erasures.find(id);
    assert(erasure?.completed, 'there is a receipt of what was completed');
    const { leaf, position, time } = erasure.completed;
    const { proofs } = this.#erasureParts.log;
    await proofs.head(leaf + 1);
    const signedHead = await proofs.headAt(leaf + 1);
    const erasureEntry = await proofs.entry({ leaf });
    if (erasureEntry === undefined) throw new ServiceError('REL_STORAGE', 'the log has no entry of the erasure');
    const tlogProofText = tlogProof({
      leaf: erasureEntry.leaf,
      leafIndex: leaf,
      path: proofs.inclusion(leaf, leaf + 1),
      head: signedHead,
    });
    return receiptOf(
      erasure.statement,
      { position, issuedAt: formatInstant(time), proof: tlogProofText },
      this.#erasureParts.signer,
    );
  }

  /** Goes on with what was intended before the start, or failed since for a reason that may pass. */
  async resume(): Promise<void> {
    for (const { id, tenant, commitment } of this.#erasureParts.state.erasures.openErasures()) {
      if (this.#isClosing) return;
      if (this.#waitingErasures.has(id)) continue;
      try {
        await this.#finishErasure(id, new CommitmentTarget(this.#erasureParts.hmacKey, tenant, commitment), noLinks);
      } catch (error) {
        if (!(error instanceof ServiceError)) throw error;
        this.#sayErasureWaits(error);
      }
    }
  }

  /** A run stops between two of its steps: a drain does not wait for all of it. */
  close(): void {
    this.#isClosing = true;
  }

  #erasuresOf(invocation: Invocation, tenant: string | null, commitment: string): readonly Erasure[] {
    const { erasures, tenants } = this.#erasureParts.state;
    const since = beginningOf(tenants, invocation.caller)?.time ?? 0n;
    return erasures.ofCommitment(commitment).filter((erasure) => erasure.tenant === tenant && erasure.intended.time >= since);
  }

  /** Null where nothing is there that was not erased before. */
  async #intendErasure(
    invocation: Invocation,
    request: { subject: string; reason: string; tenant: string | null; commitment: string; known: boolean },
    permit: ReturnType<Invocation['erasing']>,
  ): Promise<IntendedErasure | null> {
    const { state, keys, ids } = this.#erasureParts;
    const { subject, tenant, commitment, known } = request;
    const reason = new ErasureReason(request.reason, subject);
    const { rows } = state;
    const subjectVersions = await this.#runInSlices(rows.versionsOf(tenant, subject));
    const derivedVersions = rows.derivedFrom(tenant, subject);
    const removedRows = await this.#removedRowsOf(tenant);
    await this.#runInSlices(derivedVersions.find(subjectVersions.versions, removedRows));
    const earlyVersions = joinVersions(subjectVersions.versions, derivedVersions.versions);
    const erasedWords = new ErasedWords();
    // Derived rows may repeat words of other rows beside theirs.
    await this.#runInSlices(rows.cellsOf(subjectVersions.versions, (text, position) => erasedWords.add(text, position)));
    const subjectNames = new Set([subject]);
    const freeText = (text: string): void => reason.free(text);
    const addSubjectKey = (text: string): void => {
      freeText(text);
      if (text.length >= subjectKeyLengthMin) subjectNames.add(text);
    };
    const concernsReason = (text: string): boolean => reason.has(text);
    const cellsIn = new LettersInARow(reason.folded);
    const textSink = { cell: freeText, concerns: concernsReason, cellsIn };
    for (let keyLetters = keysIn(tenant, reason.folded, state); ; ) {
      await this.#runInSlices(rows.textsOf(earlyVersions, { ...textSink, key: addSubjectKey, keysIn: keyLetters }));
      // A write meanwhile may hold keys that were passed over.
      const currentLetters = keysIn(tenant, reason.folded, state);
      if (keyLetters === null || (currentLetters !== null && keyLetters.covers(currentLetters))) break;
      keyLetters = currentLetters;
    }
    for (const text of derivedVersions.removedKeys) addSubjectKey(text);
    const mentions = await this.#mentions(tenant, new SubjectNames([...subjectNames]));
    this.#expectedErasures++;
    try {
      await this.#runInSlices(rows.expectErasure(earlyVersions));
      const liveDigests = rows.liveVersionDigests();
      await this.#runInSlices(liveDigests.expect(earlyVersions));

      // One turn from here to the append: the rows found are the rows erased, and later rows are another erasure's.
      const { versions: lateVersions } = finishSteps(rows.versionsOf(tenant, subject, subjectVersions.end));
      finishSteps(rows.textsOf(lateVersions, { ...textSink, key: freeText, keysIn: cellsIn }));
      finishSteps(rows.cellsOf(lateVersions, (text, position) => erasedWords.add(text, position)));
      finishSteps(derivedVersions.find(lateVersions, this.#removedSince(tenant, subjectVersions.end), subjectVersions.end));
      const erasedVersions = joinVersions(joinVersions(subjectVersions.versions, lateVersions), derivedVersions.versions);
      const liveKeyIds = [subject, ...derivedVersions.subjects].flatMap((each) => keys.idsOf(tenant, each));
      const isNew = erasedVersions.length > 0 || liveKeyIds.length > 0 || mentions.positions.length > 0;
      if (!isNew || !mayErase(permit, state, erasedVersions)) {
        if (known && !isNew) return null;
        throw new ServiceError('REL_NOT_FOUND', 'no such subject, or none that you may erase');
      }
      const erasureId = `ers_${ids.next()}`;
      const retiredKeys = [...liveKeyIds, ...mentions.keys];
      const command = {
        kind: 'intend-erasure',
        id: erasureId,
        commitment,
        reason: reason.text,
        keys: retiredKeys,
        versions: erasedVersions,
      } as const;
      const intentStatement = intentText(
        liveDigests.digests(erasedVersions),
        erasedWords.isEmpty ? null : this.#erasureParts.seals.seal(erasedWords.savedState()),
      );
      // No key of the subject need cover what was made of its rows: it leaves the log as texts do, and its vectors.
      const derivedPositions = derivedVersions.versions.flatMap(({ positions }) => positions);
      const erasedPositions = new Set(erasedVersions.flatMap(({ positions }) => positions));
      const judgedPositions = state.judgements.about(erasedPositions, tenant);
      const mentionPositions = [
        ...new Set([
          ...mentions.positions,
          ...derivedPositions,
          ...state.embeddings.entriesOf(derivedPositions),
          ...judgedPositions,
        ]),
      ];
      const intentDurable = invocation.submit(
        { ...command, mentions: mentionPositions, statement: intentStatement },
        { sync: true },
      );
      const placedErasure = state.erasures.find(erasureId);
      if (placedErasure !== undefined) keys.retire(retiredKeys);
      await intentDurable;
      assert(placedErasure, 'an intent that is on disk was placed');
      return { erasure: placedErasure, links: mentions.links };
    } finally {
      // Data loaded for one erasure may serve another that is prepared at the same time.
      if (--this.#expectedErasures === 0) rows.expectNoErasure();
    }
  }

  /** The removed rows of the tenant, except those that were erased. */
  async #removedRowsOf(tenant: string | null): Promise<readonly RemovedRow[]> {
    const removedRows: RemovedRow[] = [];
    for (const removedRow of this.#removedSince(tenant, 0)) {
      removedRows.push(removedRow);
      await this.#yieldIfLong(this.#erasureParts.yieldTurn.soon);
    }
    return removedRows;
  }

  *#removedSince(tenant: string | null, from: number): Generator<RemovedRow> {
    const { state, seals } = this.#erasureParts;
    for (const { type, path, position, text } of state.removedKeys.sources(tenant, from)) {
      const opened = seals.open(text);
      if (opened !== null) yield { type, path, position, ...(JSON.parse(opened) as RemovedSource) };
    }
  }

  /** `names`: the subject itself, and the keys of its rows. */
  #mentions(tenant: string | null, names: SubjectNames): Promise<Mentions> {
    const { exhibits, openEntries, views, removedKeys } = this.#erasureParts.state;
    const { log, seals } = this.#erasureParts;
    const yieldTurn = (): Promise<void> => this.#yieldIfLong(this.#erasureParts.yieldTurn.soon);
    return mentionsOf(tenant, names, { log, exhibits, openEntries, views, removedKeys, seals, yieldTurn });
  }

  async #runInSlices<T>(erasureSteps: Generator<undefined, T>, yieldTurn = this.#erasureParts.yieldTurn.soon): Promise<T> {
    for (let step = erasureSteps.next(); ; step = erasureSteps.next()) {
      if (step.done === true) return step.value;
      if (this.#isSliceLong) await this.#yieldIfLong(yieldTurn);
    }
  }

  /** A slice is over. */
  get #isSliceLong(): boolean {
    return this.#erasureParts.clock.monotonicMs() - this.#erasureSliceStartMs >= erasureSliceMs;
  }

  /** Gives other work a turn once a slice is over. */
  async #yieldIfLong(yieldTurn: () => Promise<void>): Promise<void> {
    if (!this.#isSliceLong) return;
    await yieldTurn();
    this.#erasureSliceStartMs = this.#erasureParts.clock.monotonicMs();
  }

  #finishErasure(id: string, sought: ScanTarget, lookedAtLinks: LookedAtLinks): Promise<void> {
    let erasureRun = this.#runningErasures.get(id);
    if (erasureRun === undefined) {
      erasureRun = this.#runErasure(id, sought, lookedAtLinks).finally(() => {
        this.#runningErasures.delete(id);
        this.#awaitedErasures.delete(id);
      });
      this.#runningErasures.set(id, erasureRun);
    }
    return erasureRun;
  }

  #runErasure(id: string, sought: ScanTarget, { links }: LookedAtLinks): Promise<void> {
    const { gate, ids } = this.#erasureParts;
    const completionRequest = { action: 'administer', purpose: null, correlationId: ids.next() } as const;
    const nextStep = (): Promise<void> => this.#nextErasureStep(id);
    return gate.invoke(completionCaretaker, completionRequest, async (invocation) => {
      const { state, keys, derived, log, seals, backupsBefore, bodies } = this.#erasureParts;
      const intendedErasure = state.erasures.find(id);
      assert(intendedErasure, 'an erasure that is run was intended');
      if (intendedErasure.completed !== null) return;
      await keys.destroy(intendedErasure.keys, id);
      await nextStep();
      // Rows are under the subject's keys, most recipes and definitions under keys of their own: a file is written anew for other texts alone.
      const unsealedTexts = await this.#findUnsealedTexts(intendedErasure.mentions, nextStep);
      if (unsealedTexts.length > 0) await this.#redactions.join(unsealedTexts, nextStep);
      for (const store of this.#textStores) store.forget?.(intendedErasure.tenant);
      await nextStep();
      if (!(await derived.renew())) {
        throw new ServiceError(
          'REL_STORAGE',
          `the rows of the erasure ${id} are hidden, but older derived files can’t be replaced`,
        );
      }
      await this.#runInSlices(state.rows.wipe(), nextStep);
      const { context, body } = (await log.proofs.entry({ leaf: intendedErasure.intended.leaf }))!.open().entry;
      assert(body.kind === 'erasure', 'an erasure was intended by an entry of its own');
      const sealedWords = wordsIn(body.statement);
      const { hits: residualHits, lookedAt } = await residualScan(intendedErasure, sought, {
        state,
        log,
        keys,
        seals,
        stores: this.#textStores,
        bodies,
        links,
        words: this.#openErasedWords(sealedWords),
        staleFiles: () => derived.stale(),
        yieldTurn: nextStep,
      });
      if (residualHits.length > 0) {
        this.#waitingErasures.add(id);
        throw residualError(id, residualHits);
      }
      const completionStatement = statementText({
        version: 1,
        receipt_id: id,
        subject_commitment: intendedErasure.commitment,
        reason: intendedErasure.reason,
        requested_by: intendedErasure.principal,
        tenant: intendedErasure.tenant,
        purpose: context.purpose,
        policy_digest: context.policyDigest,
        intent_seq: intendedErasure.intended.position,
        keys_destroyed: intendedErasure.keys,
        counts: erasureCountsOf(intendedErasure),
        projections: touchedBy(intendedErasure.counts, body.statement),
        verification: { method: sought.method, looked_at: lookedAt, residual_hits: 0 },
        residuals: await backupsBefore(intendedErasure.intended.position),
      });
      // The words themselves are of the subject: no certificate while they can be read.
      if (sealedWords !== null) await keys.destroy(sealedKeyOf(sealedWords), id);
      await invocation.submit({ kind: 'complete-erasure', id, statement: completionStatement }, { sync: true });
    });
  }

  /** Where a run was cut off between its scan and its end, the words were looked for already, and are gone. */
  #openErasedWords(sealedWords: string | null): ErasedWords {
    const savedWords = sealedWords === null ? null : this.#erasureParts.seals.open(sealedWords);
    return savedWords === null ? new ErasedWords() : ErasedWords.fromSaved(savedWords);
  }

  /** The positions among these, ascending, whose texts are not covered by a key of their own. */
  async #findUnsealedTexts(positions: readonly number[], nextStep: () => Promise<void>): Promise<readonly number[]> {
    const lateErased: number[] = [];
    for (const position of positions) {
      await nextStep();
      const entryBody = (await this.#erasureParts.log.proofs.entry({ position }))?.open().entry.body;
      if (entryBody === undefined || textKeysOf(entryBody).length === 0) lateErased.push(position);
    }
    return lateErased;
  }

  async #nextErasureStep(id: string): Promise<void> {
    const { forCaller: awaited, later } = this.#erasureParts.yieldTurn;
    await this.#yieldIfLong(this.#awaitedErasures.has(id) ? awaited : later);
    if (this.#isClosing) {
      throw new ServiceError(
        'REL_UNAVAILABLE',
        'the service is draining; the rows are hidden, and the erasure continues after the next start',
      );
    }
  }

  #sayErasureWaits(error: unknown): void {
    this.#erasureParts.say(`an erasure waits for its end: ${error instanceof Error ? error.message : String(error)}`);
  }
}

/** Both, by type. */
function joinVersions(
  earlyVersions: readonly ErasedVersions[],
  lateVersions: readonly ErasedVersions[],
): readonly ErasedVersions[] {
  const versionsByType = new Map(earlyVersions.map((each) => [each.type, each]));
  for (const { type, paths, positions } of lateVersions) {
    const earlierVersions = versionsByType.get(type);
    versionsByType.set(type, {
      type,
      paths: [...new Set([...(earlierVersions?.paths ?? []), ...paths])],
      positions: [...(earlierVersions?.positions ?? []), ...positions].sort((a, b) => a - b),
    });
  }
  return [...versionsByType.values()];
}

function checkEraseRequest({ subject, reason }: EraseRequest): void {
  checkText(subject, 'the subject');
  checkText(reason, 'the reason');
  if (subject === '' || subject.length > subjectLengthMax) {
    throw new ServiceError('REL_INVALID', `a subject has 1 to ${subjectLengthMax} characters`);
  }
  if (reason.trim() === '' || reason.length > reasonLengthMax) {
    throw new ServiceError('REL_INVALID', `a reason has 1 to ${reasonLengthMax} characters`);
  }
}

function residualError(id: string, hits: readonly ResidualHit[]): ServiceError {
  const hitTexts = hits.map(({ where, what, count }) => `${where}${what === null ? '' : ` ${what}`}: ${count}`).join('; ');
  return new ServiceError(
    'REL_UNPROCESSABLE',
    `erasure incomplete: the rows are hidden, but the subject still appears in ${hitTexts}. Remove it there and erase again: there is no certificate until then`,
    { extras: { erasure: id, residuals: hits.map(({ where, what, count }) => ({ where, what, count })) } },
  );
}

function erasedVersionCount({ counts }: Pick<Erasure, 'counts'>): number {
  return counts.reduce((sum, { versions }) => sum + versions, 0);
}

function erasureCountsOf(erasure: Pick<Erasure, 'counts' | 'mentions' | 'keys'>): Record<string, number> {
  const { counts, mentions, keys } = erasure;
  return { keys: keys.length, mentions: mentions.length, types: counts.length, versions: erasedVersionCount(erasure) };
}
