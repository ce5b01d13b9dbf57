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

interface Intended {
  readonly erasure: Erasure;
  /** Leaves of links that were found to say nothing of the subject, or stand among its mentions. */
  readonly links: ReadonlySet<number>;
}

const reasonLengthMax = 4_096;
const subjectLengthMax = 1_024;
/** Findings from before the intent, for the scan alone. */
type Looked = Pick<Intended, 'links'>;
const nothing: Looked = { links: new Set() };
const caretaker = tenantlessCaller('annals', 'operator', 'internal');
const sliceMs = 2;
/** A shorter key names too much else to be looked for in texts. */
const keyLengthMin = 4;

export class SubjectErasure {
  readonly #parts: SubjectErasureDependencies;
  readonly #stores: TextStore[] = [];
  readonly #running = new Map<string, Promise<void>>();
  /** Each writes files of the log anew: erasures that run beside each other share them. */
  readonly #redactions: SharedRounds<number>;
  /** A caller waits for their receipt. */
  readonly #awaited = new Set<string>();
  /** Erasures with a remainder of the subject: they continue with the next request, or after a start. */
  readonly #waiting = new Set<string>();
  /** Erasures that are made ready. */
  #expected = 0;
  #closing = false;
  #sliceStartMs = 0;

  constructor(parts: SubjectErasureDependencies) {
    this.#parts = parts;
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
    return hexOf(this.#parts.signer.publicKey);
  }

  /** From here on erasures reach this store, too. */
  reach(store: TextStore): void {
    this.#stores.push(store);
  }

  /** REL_NOT_FOUND where there is nothing to erase and nothing was erased before; REL_CONFLICT while a row is held. */
  async erase(invocation: Invocation, request: EraseRequest): Promise<Erased> {
    invocation.describe({ action: 'erase' });
    const permit = invocation.erasing();
    const { subject, reason, certify } = request;
    checkRequest(request);
    const { caller } = invocation;
    const tenant = tenantOf(caller.path);
    if (caller.path !== tenant) {
      throw new ServiceError('REL_ACL', 'an erasure covers the whole tenant: send it under the tenant’s own path');
    }
    const salt = saltOf(this.#parts.hmacKey, tenant, subject);
    const commitment = commitmentOf(salt, subject);
    const known = this.#erasuresOf(invocation, tenant, commitment);
    const intended = await this.#intend(invocation, { subject, reason, tenant, commitment, known: known.length > 0 }, permit);
    const last = intended?.erasure ?? known.at(-1);
    assert(last, 'what is not known was intended');
    const types = last.counts.map(({ type }) => type).join(',');
    invocation.describe({ rowCount: versionsIn(last), ...(types !== '' && { objectType: types }) });

    const sought = new TextTarget(subject);
    const openErasures = this.#erasuresOf(invocation, tenant, commitment).filter(({ completed }) => completed === null);
    // An earlier erasure names other mentions: only this one's own scan may skip the mentions found here.
    const findingsFor = (id: string): Looked => (id === intended?.erasure.id ? intended : nothing);
    if (certify) for (const { id } of openErasures) this.#awaited.add(id);
    const ended = Promise.all(openErasures.map(({ id }) => this.#finish(id, sought, findingsFor(id))));
    if (certify) await ended;
    else ended.catch((error: unknown) => this.#sayWaiting(error));
    const { id, completed } = this.#parts.state.erasures.find(last.id)!;
    return {
      id,
      versions: versionsIn(last),
      certified: completed !== null,
      receipt: certify ? await this.receipt(id) : null,
      salt: intended !== null && known.length === 0 ? hexOf(salt) : null,
      verificationKey: this.verificationKey,
    };
  }

  /** The receipt of an erasure that was completed. */
  async receipt(id: string): Promise<Envelope> {
    const erasure = this.#parts.state.erasures.find(id);
    assert(erasure?.completed, 'there is a receipt of what was completed');
    const { leaf, position, time } = erasure.completed;
    const { proofs } = this.#parts.log;
    await proofs.head(leaf + 1);
    const head = await proofs.headAt(leaf + 1);
    const stored = await proofs.entry({ leaf });
    if (stored === undefined) throw new ServiceError('REL_STORAGE', 'the log has no entry of the erasure');
    const proof = tlogProof({ leaf: stored.leaf, leafIndex: leaf, path: proofs.inclusion(leaf, leaf + 1), head });
    return receiptOf(erasure.statement, { position, issuedAt: formatInstant(time), proof }, this.#parts.signer);
  }

  /** Goes on with what was intended before the start, or failed since for a reason that may pass. */
  async resume(): Promise<void> {
    for (const { id, tenant, commitment } of this.#parts.state.erasures.openErasures()) {
      if (this.#closing) return;
      if (this.#waiting.has(id)) continue;
      try {
        await this.#finish(id, new CommitmentTarget(this.#parts.hmacKey, tenant, commitment), nothing);
      } catch (error) {
        if (!(error instanceof ServiceError)) throw error;
        this.#sayWaiting(error);
      }
    }
  }

  /** A run stops between two of its steps: a drain does not wait for all of it. */
  close(): void {
    this.#closing = true;
  }

  #erasuresOf(invocation: Invocation, tenant: string | null, commitment: string): readonly Erasure[] {
    const { erasures, tenants } = this.#parts.state;
    const since = beginningOf(tenants, invocation.caller)?.time ?? 0n;
    return erasures.ofCommitment(commitment).filter((erasure) => erasure.tenant === tenant && erasure.intended.time >= since);
  }

  /** Null where nothing is there that was not erased before. */
  async #intend(
    invocation: Invocation,
    asked: { subject: string; reason: string; tenant: string | null; commitment: string; known: boolean },
    permit: ReturnType<Invocation['erasing']>,
  ): Promise<Intended | null> {
    const { state, keys, ids } = this.#parts;
    const { subject, tenant, commitment, known } = asked;
    const reason = new ErasureReason(asked.reason, subject);
    const { rows } = state;
    const subjectVersions = await this.#inSlices(rows.versionsOf(tenant, subject));
    const derived = rows.derivedFrom(tenant, subject);
    const removed = await this.#removedRows(tenant);
    await this.#inSlices(derived.find(subjectVersions.versions, removed));
    const early = together(subjectVersions.versions, derived.versions);
    const words = new ErasedWords();
    // Derived rows may repeat words of other rows beside theirs.
    await this.#inSlices(rows.cellsOf(subjectVersions.versions, (text, position) => words.add(text, position)));
    const names = new Set([subject]);
    const freeText = (text: string): void => reason.free(text);
    const key = (text: string): void => {
      freeText(text);
      if (text.length >= keyLengthMin) names.add(text);
    };
    const concerns = (text: string): boolean => reason.has(text);
    const cellsIn = new LettersInARow(reason.folded);
    const of = { cell: freeText, concerns, cellsIn };
    for (let letters = keysIn(tenant, reason.folded, state); ; ) {
      await this.#inSlices(rows.textsOf(early, { ...of, key, keysIn: letters }));
      // A write meanwhile may hold keys that were passed over.
      const now = keysIn(tenant, reason.folded, state);
      if (letters === null || (now !== null && letters.covers(now))) break;
      letters = now;
    }
    for (const text of derived.removedKeys) key(text);
    const mentions = await this.#mentions(tenant, new SubjectNames([...names]));
    this.#expected++;
    try {
      await this.#inSlices(rows.expectErasure(early));
      const liveDigests = rows.liveVersionDigests();
      await this.#inSlices(liveDigests.expect(early));

      // One turn from here to the append: the rows found are the rows erased, and later rows are another erasure's.
      const { versions: late } = finishSteps(rows.versionsOf(tenant, subject, subjectVersions.end));
      finishSteps(rows.textsOf(late, { ...of, key: freeText, keysIn: cellsIn }));
      finishSteps(rows.cellsOf(late, (text, position) => words.add(text, position)));
      finishSteps(derived.find(late, this.#removedSince(tenant, subjectVersions.end), subjectVersions.end));
      const versions = together(together(subjectVersions.versions, late), derived.versions);
      const live = [subject, ...derived.subjects].flatMap((each) => keys.idsOf(tenant, each));
      const isNew = versions.length > 0 || live.length > 0 || mentions.positions.length > 0;
      if (!isNew || !mayErase(permit, state, versions)) {
        if (known && !isNew) return null;
        throw new ServiceError('REL_NOT_FOUND', 'no such subject, or none that you may erase');
      }
      const id = `ers_${ids.next()}`;
      const retired = [...live, ...mentions.keys];
      const command = { kind: 'intend-erasure', id, commitment, reason: reason.text, keys: retired, versions } as const;
      const statement = intentText(
        liveDigests.digests(versions),
        words.isEmpty ? null : this.#parts.seals.seal(words.savedState()),
      );
      // No key of the subject need cover what was made of its rows: it leaves the log as texts do, and its vectors.
      const derivedPositions = derived.versions.flatMap(({ positions }) => positions);
      const gone = new Set(versions.flatMap(({ positions }) => positions));
      const judged = state.judgements.about(gone, tenant);
      const texts = [
        ...new Set([...mentions.positions, ...derivedPositions, ...state.embeddings.entriesOf(derivedPositions), ...judged]),
      ];
      const durable = invocation.submit({ ...command, mentions: texts, statement }, { sync: true });
      const placed = state.erasures.find(id);
      if (placed !== undefined) keys.retire(retired);
      await durable;
      assert(placed, 'an intent that is on disk was placed');
      return { erasure: placed, links: mentions.links };
    } finally {
      // Data loaded for one erasure may serve another that is prepared at the same time.
      if (--this.#expected === 0) rows.expectNoErasure();
    }
  }

  /** The removed rows of the tenant, except those that were erased. */
  async #removedRows(tenant: string | null): Promise<readonly RemovedRow[]> {
    const rows: RemovedRow[] = [];
    for (const row of this.#removedSince(tenant, 0)) {
      rows.push(row);
      await this.#breathe(this.#parts.yieldTurn.soon);
    }
    return rows;
  }

  *#removedSince(tenant: string | null, from: number): Generator<RemovedRow> {
    const { state, seals } = this.#parts;
    for (const { type, path, position, text } of state.removedKeys.sources(tenant, from)) {
      const opened = seals.open(text);
      if (opened !== null) yield { type, path, position, ...(JSON.parse(opened) as RemovedSource) };
    }
  }

  /** `names`: the subject itself, and the keys of its rows. */
  #mentions(tenant: string | null, names: SubjectNames): Promise<Mentions> {
    const { exhibits, openEntries, views, removedKeys } = this.#parts.state;
    const { log, seals } = this.#parts;
    const yieldTurn = (): Promise<void> => this.#breathe(this.#parts.yieldTurn.soon);
    return mentionsOf(tenant, names, { log, exhibits, openEntries, views, removedKeys, seals, yieldTurn });
  }

  async #inSlices<T>(steps: Generator<undefined, T>, yieldTurn = this.#parts.yieldTurn.soon): Promise<T> {
    for (let step = steps.next(); ; step = steps.next()) {
      if (step.done === true) return step.value;
      if (this.#isLong) await this.#breathe(yieldTurn);
    }
  }

  /** A slice is over. */
  get #isLong(): boolean {
    return this.#parts.clock.monotonicMs() - this.#sliceStartMs >= sliceMs;
  }

  /** Gives other work a turn once a slice is over. */
  async #breathe(yieldTurn: () => Promise<void>): Promise<void> {
    if (!this.#isLong) return;
    await yieldTurn();
    this.#sliceStartMs = this.#parts.clock.monotonicMs();
  }

  #finish(id: string, sought: ScanTarget, looked: Looked): Promise<void> {
    let run = this.#running.get(id);
    if (run === undefined) {
      run = this.#run(id, sought, looked).finally(() => {
        this.#running.delete(id);
        this.#awaited.delete(id);
      });
      this.#running.set(id, run);
    }
    return run;
  }

  #run(id: string, sought: ScanTarget, { links }: Looked): Promise<void> {
    const { gate, ids } = this.#parts;
    const request = { action: 'administer', purpose: null, correlationId: ids.next() } as const;
    const nextStep = (): Promise<void> => this.#nextStep(id);
    return gate.invoke(caretaker, request, async (invocation) => {
      const { state, keys, derived, log, seals, backupsBefore, bodies } = this.#parts;
      const erasure = state.erasures.find(id);
      assert(erasure, 'an erasure that is run was intended');
      if (erasure.completed !== null) return;
      await keys.destroy(erasure.keys, id);
      await nextStep();
      // Rows are under the subject's keys, most recipes and definitions under keys of their own: a file is written anew for other texts alone.
      const texts = await this.#findUnsealed(erasure.mentions, nextStep);
      if (texts.length > 0) await this.#redactions.join(texts, nextStep);
      for (const store of this.#stores) store.forget?.(erasure.tenant);
      await nextStep();
      if (!(await derived.renew())) {
        throw new ServiceError(
          'REL_STORAGE',
          `the rows of the erasure ${id} are hidden, but older derived files can’t be replaced`,
        );
      }
      await this.#inSlices(state.rows.wipe(), nextStep);
      const { context, body } = (await log.proofs.entry({ leaf: erasure.intended.leaf }))!.open().entry;
      assert(body.kind === 'erasure', 'an erasure was intended by an entry of its own');
      const sealed = wordsIn(body.statement);
      const { hits, lookedAt } = await residualScan(erasure, sought, {
        state,
        log,
        keys,
        seals,
        stores: this.#stores,
        bodies,
        links,
        words: this.#openWords(sealed),
        staleFiles: () => derived.stale(),
        yieldTurn: nextStep,
      });
      if (hits.length > 0) {
        this.#waiting.add(id);
        throw residual(id, hits);
      }
      const statement = statementText({
        version: 1,
        receipt_id: id,
        subject_commitment: erasure.commitment,
        reason: erasure.reason,
        requested_by: erasure.principal,
        tenant: erasure.tenant,
        purpose: context.purpose,
        policy_digest: context.policyDigest,
        intent_seq: erasure.intended.position,
        keys_destroyed: erasure.keys,
        counts: countsOf(erasure),
        projections: touchedBy(erasure.counts, body.statement),
        verification: { method: sought.method, looked_at: lookedAt, residual_hits: 0 },
        residuals: await backupsBefore(erasure.intended.position),
      });
      // The words themselves are of the subject: no certificate while they can be read.
      if (sealed !== null) await keys.destroy(sealedKeyOf(sealed), id);
      await invocation.submit({ kind: 'complete-erasure', id, statement }, { sync: true });
    });
  }

  /** Where a run was cut off between its scan and its end, the words were looked for already, and are gone. */
  #openWords(sealed: string | null): ErasedWords {
    const saved = sealed === null ? null : this.#parts.seals.open(sealed);
    return saved === null ? new ErasedWords() : ErasedWords.fromSaved(saved);
  }

  /** The positions among these, ascending, whose texts are not covered by a key of their own. */
  async #findUnsealed(positions: readonly number[], nextStep: () => Promise<void>): Promise<readonly number[]> {
    const lateErased: number[] = [];
    for (const position of positions) {
      await nextStep();
      const body = (await this.#parts.log.proofs.entry({ position }))?.open().entry.body;
      if (body === undefined || textKeysOf(body).length === 0) lateErased.push(position);
    }
    return lateErased;
  }

  async #nextStep(id: string): Promise<void> {
    const { forCaller: awaited, later } = this.#parts.yieldTurn;
    await this.#breathe(this.#awaited.has(id) ? awaited : later);
    if (this.#closing) {
      throw new ServiceError(
        'REL_UNAVAILABLE',
        'the service is draining; the rows are hidden, and the erasure continues after the next start',
      );
    }
  }

  #sayWaiting(error: unknown): void {
    this.#parts.say(`an erasure waits for its end: ${error instanceof Error ? error.message : String(error)}`);
  }
}

/** Both, by type. */
function together(early: readonly ErasedVersions[], late: readonly ErasedVersions[]): readonly ErasedVersions[] {
  const types = new Map(early.map((each) => [each.type, each]));
  for (const { type, paths, positions } of late) {
    const before = types.get(type);
    types.set(type, {
      type,
      paths: [...new Set([...(before?.paths ?? []), ...paths])],
      positions: [...(before?.positions ?? []), ...positions].sort((a, b) => a - b),
    });
  }
  return [...types.values()];
}

function checkRequest({ subject, reason }: EraseRequest): void {
  checkText(subject, 'the subject');
  checkText(reason, 'the reason');
  if (subject === '' || subject.length > subjectLengthMax) {
    throw new ServiceError('REL_INVALID', `a subject has 1 to ${subjectLengthMax} characters`);
  }
  if (reason.trim() === '' || reason.length > reasonLengthMax) {
    throw new ServiceError('REL_INVALID', `a reason has 1 to ${reasonLengthMax} characters`);
  }
}

function residual(id: string, hits: readonly ResidualHit[]): ServiceError {
  const hitTexts = hits.map(({ where, what, count }) => `${where}${what === null ? '' : ` ${what}`}: ${count}`).join('; ');
  return new ServiceError(
    'REL_UNPROCESSABLE',
    `erasure incomplete: the rows are hidden, but the subject still appears in ${hitTexts}. Remove it there and erase again: there is no certificate until then`,
    { extras: { erasure: id, residuals: hits.map(({ where, what, count }) => ({ where, what, count })) } },
  );
}

function versionsIn({ counts }: Pick<Erasure, 'counts'>): number {
  return counts.reduce((sum, { versions }) => sum + versions, 0);
}

function countsOf(erasure: Pick<Erasure, 'counts' | 'mentions' | 'keys'>): Record<string, number> {
  const { counts, mentions, keys } = erasure;
  return { keys: keys.length, mentions: mentions.length, types: counts.length, versions: versionsIn(erasure) };
}
