/**
 * Proofs for a caller: of entries whose organisation path the caller's own covers, and of rows that it may read. Entries that it
 * may not see get the same answer as entries that do not exist.
 *
 *   rows, removals, types, tokens, branches, views, exhibits, receipts   the path that the leaf names
 *   access records of one flush                                          one of them is of the caller's scope
 *   genesis, seals                                                       everybody: they name nobody
 *
 * A leaf says who wrote what where; node hashes, tree heads and sizes reveal nothing of any entry, and are for callers who may
 * audit. Types, branches and tokens belong to all of the store, but their leaves name their makers.
 */
import { ServiceError } from '../../errors.ts';
import { type EntryContext, splitParts } from '../../log/entries/entry.ts';
import type { EntryLocator } from '../../log/files/log-reader.ts';
import type { LogProofs, SignedHead, StoredEntry } from '../../log/log-store.ts';
import { proveRow, type RowProof, rowsOfKey } from '../../log/proofs/row-proof.ts';
import { statementOf } from '../../log/entries/statement-root.ts';
import { isClassified } from '../authorization/egress.ts';
import type { EntryProof, ProofReader, ProofRequest } from '../gate-contract.ts';

export interface ProofSources {
  readonly proofs: LogProofs;
  readonly origin: string;
  /** Whether an entry or access record made under this path, at this instant, is the caller's to see. */
  readonly visible: (path: string | null, time: bigint) => boolean;
  /** Whether the caller may read the version of this type that began at this instant, as of now. */
  readonly readable: (context: EntryContext, type: string, systemFrom: bigint) => boolean;
  /** The position whose instant this is; -1 when none has it. */
  readonly positionAt: (systemFrom: bigint) => number;
  /** Position of the entry that forked the branch of this name which stands now. */
  readonly forkOf: (branch: string) => number | undefined;
}

export class ProofDesk implements ProofReader {
  readonly #proofSources: ProofSources;

  constructor(sources: ProofSources) {
    this.#proofSources = sources;
  }

  get origin(): string {
    return this.#proofSources.origin;
  }

  get key(): string {
    return this.#proofSources.proofs.key;
  }

  get treeSize(): number {
    return this.#proofSources.proofs.durable;
  }

  leafHash(leaf: number): Uint8Array {
    return this.#proofSources.proofs.leafHash(leaf);
  }

  head(): Promise<SignedHead> {
    return this.#proofSources.proofs.head(1);
  }

  async tile(level: number, index: number, width: number): Promise<Uint8Array> {
    const { size: signedTreeSize } = await this.head();
    const treeTile = this.#proofSources.proofs.tile(level, index, width, signedTreeSize);
    if (treeTile === null) throw new ServiceError('REL_NOT_FOUND', 'the signed tree has no such tile yet');
    return treeTile;
  }

  async entry(proofRequest: ProofRequest): Promise<EntryProof> {
    const { proofs, origin } = this.#proofSources;
    const locatedRequest = this.#withPosition(proofRequest);
    const provenEntry = await this.#findProvenEntry(locatedRequest);
    const { facts, leaf } = provenEntry;
    const rowProof = locatedRequest.row === undefined ? null : await this.#rowProof(provenEntry, locatedRequest);
    const signedHead = await this.#headOver(facts.leaf, locatedRequest.treeSize);
    return {
      origin,
      position: rowProof !== null ? facts.position + rowProof.index : provenPosition(locatedRequest, provenEntry),
      leafIndex: facts.leaf,
      leafHash: proofs.leafHash(facts.leaf),
      leaf,
      head: signedHead,
      path: proofs.inclusion(facts.leaf, signedHead.size),
      consistency: locatedRequest.from === undefined ? null : this.#prefixProof(locatedRequest.from, signedHead.size),
      row: rowProof,
      branch: locatedRequest.branch === undefined ? null : this.#forkProof(provenEntry, locatedRequest.branch, signedHead.size),
    };
  }

  /** An instant names a position as well as its number does. */
  #withPosition(request: ProofRequest): ProofRequest {
    if (request.systemFrom === undefined) return request;
    const position = this.#proofSources.positionAt(request.systemFrom);
    if (position < 0) throw proofNotFound();
    return { ...request, position };
  }

  async #findProvenEntry(request: ProofRequest): Promise<StoredEntry> {
    const provenEntry = await this.#proofSources.proofs.entry(this.#locatorOf(request));
    if (provenEntry === undefined || !this.#seesEntry(provenEntry)) throw proofNotFound();
    return provenEntry;
  }

  #locatorOf({ position, leaf, branch }: ProofRequest): EntryLocator {
    if (branch !== undefined) {
      const fork = this.#proofSources.forkOf(branch);
      if (fork === undefined) throw proofNotFound();
      return { position: fork };
    }
    if (leaf !== undefined) return { leaf };
    if (position === undefined) throw new ServiceError('REL_INVALID', 'a proof needs a position, an instant, a leaf or a branch');
    return { position };
  }

  #seesEntry(stored: StoredEntry): boolean {
    const { kind, context, time } = stored.facts;
    if (kind === 'genesis' || kind === 'seal') return true;
    if (kind !== 'access' && this.#proofSources.visible(context.path, time)) return true;
    if (kind !== 'access' && kind !== 'agreement') return false;
    const { body } = stored.open().entry;
    // Both sides see what either did.
    if (body.kind === 'agreement') {
      const { assigner, assignee } = body.agreement;
      return [assigner, assignee].some((agreementSide) => this.#proofSources.visible(agreementSide, time));
    }
    return body.kind === 'access' && body.records.some((record) => this.#proofSources.visible(record.path, record.time));
  }

  /** A head that covers the leaf: the newest, or that of the size asked for. */
  async #headOver(leaf: number, treeSize: number | undefined): Promise<SignedHead> {
    const { proofs } = this.#proofSources;
    const newestHead = await proofs.head(leaf + 1);
    if (treeSize === undefined) return newestHead;
    if (treeSize <= leaf) throw new ServiceError('REL_INVALID', `a tree of ${treeSize} leaves does not hold leaf ${leaf}`);
    if (treeSize > Math.max(newestHead.size, proofs.durable)) {
      throw new ServiceError('REL_INVALID', `tree_size: ${Math.max(newestHead.size, proofs.durable)} leaves are durable by now`);
    }
    return proofs.headAt(treeSize);
  }

  #prefixProof(first: number, second: number): NonNullable<EntryProof['consistency']> {
    const { proofs } = this.#proofSources;
    if (first < 1 || first > second) {
      throw new ServiceError('REL_INVALID', `from: expected the size of an earlier tree, 1 to ${second}`);
    }
    return { first, second, firstRoot: proofs.root(first), path: proofs.consistency(first, second) };
  }

  async #rowProof(provenEntry: StoredEntry, request: ProofRequest): Promise<RowProof> {
    const { facts } = provenEntry;
    if (facts.kind !== 'rows') throw proofNotFound();
    const { entry, parts } = provenEntry.open();
    const candidateRows: number[] = [];
    for (const { context, body, position, time } of splitParts(entry)) {
      if (body.kind !== 'rows') continue;
      for (const row of rowsOfKey(body, request.row!))
        if (this.#isRowReadable(context, body.type, time + BigInt(row))) candidateRows.push(position - facts.position + row);
    }
    const rowInEntry = request.position === undefined ? undefined : request.position - facts.position;
    const provenRow = candidateRows.find((row) => row === rowInEntry) ?? candidateRows[0];
    const rowProof = provenRow === undefined ? null : await proveRow(facts, parts, provenRow);
    if (rowProof === null) throw proofNotFound();
    return rowProof;
  }

  /** Hard-deleted rows are still in the log until they are dropped from it; no caller sees them. */
  #isRowReadable(context: EntryContext, type: string, systemFrom: bigint): boolean {
    return !isClassified(type) && this.#proofSources.readable(context, type, systemFrom);
  }

  /** The statement of the branch's first entry, and a proof that the log before it is a prefix of the log of now. */
  #forkProof(stored: StoredEntry, name: string, size: number): NonNullable<EntryProof['branch']> {
    const { facts } = stored;
    const { body } = stored.open().entry;
    const forkStatement = statementOf(body);
    if (body.kind !== 'branch' || body.change !== 'forked' || body.name !== name || forkStatement === null) throw proofNotFound();
    const { source, shares } = body;
    return {
      name,
      source,
      shares,
      statement: forkStatement,
      position: facts.position,
      fork: this.#prefixProof(facts.leaf, size),
    };
  }
}

function provenPosition({ position }: ProofRequest, { facts }: StoredEntry): number | null {
  return position ?? (facts.positions === 0 ? null : facts.position);
}

const proofNotFound = (): ServiceError =>
  new ServiceError('REL_NOT_FOUND', 'there is no such entry or row, or none that this credential may see');
