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
  readonly #sources: ProofSources;

  constructor(sources: ProofSources) {
    this.#sources = sources;
  }

  get origin(): string {
    return this.#sources.origin;
  }

  get key(): string {
    return this.#sources.proofs.key;
  }

  get treeSize(): number {
    return this.#sources.proofs.durable;
  }

  leafHash(leaf: number): Uint8Array {
    return this.#sources.proofs.leafHash(leaf);
  }

  head(): Promise<SignedHead> {
    return this.#sources.proofs.head(1);
  }

  async tile(level: number, index: number, width: number): Promise<Uint8Array> {
    const { size } = await this.head();
    const tile = this.#sources.proofs.tile(level, index, width, size);
    if (tile === null) throw new ServiceError('REL_NOT_FOUND', 'the signed tree has no such tile yet');
    return tile;
  }

  async entry(asked: ProofRequest): Promise<EntryProof> {
    const { proofs, origin } = this.#sources;
    const request = this.#withPosition(asked);
    const stored = await this.#find(request);
    const { facts, leaf } = stored;
    const row = request.row === undefined ? null : await this.#row(stored, request);
    const head = await this.#head(facts.leaf, request.treeSize);
    return {
      origin,
      position: row !== null ? facts.position + row.index : positionShown(request, stored),
      leafIndex: facts.leaf,
      leafHash: proofs.leafHash(facts.leaf),
      leaf,
      head,
      path: proofs.inclusion(facts.leaf, head.size),
      consistency: request.from === undefined ? null : this.#prefix(request.from, head.size),
      row,
      branch: request.branch === undefined ? null : this.#descent(stored, request.branch, head.size),
    };
  }

  /** An instant names a position as well as its number does. */
  #withPosition(request: ProofRequest): ProofRequest {
    if (request.systemFrom === undefined) return request;
    const position = this.#sources.positionAt(request.systemFrom);
    if (position < 0) throw notFound();
    return { ...request, position };
  }

  async #find(request: ProofRequest): Promise<StoredEntry> {
    const stored = await this.#sources.proofs.entry(this.#locatorOf(request));
    if (stored === undefined || !this.#sees(stored)) throw notFound();
    return stored;
  }

  #locatorOf({ position, leaf, branch }: ProofRequest): EntryLocator {
    if (branch !== undefined) {
      const fork = this.#sources.forkOf(branch);
      if (fork === undefined) throw notFound();
      return { position: fork };
    }
    if (leaf !== undefined) return { leaf };
    if (position === undefined) throw new ServiceError('REL_INVALID', 'a proof needs a position, an instant, a leaf or a branch');
    return { position };
  }

  #sees(stored: StoredEntry): boolean {
    const { kind, context, time } = stored.facts;
    if (kind === 'genesis' || kind === 'seal') return true;
    if (kind !== 'access' && this.#sources.visible(context.path, time)) return true;
    if (kind !== 'access' && kind !== 'agreement') return false;
    const { body } = stored.open().entry;
    // Both sides see what either did.
    if (body.kind === 'agreement') {
      const { assigner, assignee } = body.agreement;
      return [assigner, assignee].some((side) => this.#sources.visible(side, time));
    }
    return body.kind === 'access' && body.records.some((record) => this.#sources.visible(record.path, record.time));
  }

  /** A head that covers the leaf: the newest, or that of the size asked for. */
  async #head(leaf: number, treeSize: number | undefined): Promise<SignedHead> {
    const { proofs } = this.#sources;
    const newest = await proofs.head(leaf + 1);
    if (treeSize === undefined) return newest;
    if (treeSize <= leaf) throw new ServiceError('REL_INVALID', `a tree of ${treeSize} leaves does not hold leaf ${leaf}`);
    if (treeSize > Math.max(newest.size, proofs.durable)) {
      throw new ServiceError('REL_INVALID', `tree_size: ${Math.max(newest.size, proofs.durable)} leaves are durable by now`);
    }
    return proofs.headAt(treeSize);
  }

  #prefix(first: number, second: number): NonNullable<EntryProof['consistency']> {
    const { proofs } = this.#sources;
    if (first < 1 || first > second) {
      throw new ServiceError('REL_INVALID', `from: expected the size of an earlier tree, 1 to ${second}`);
    }
    return { first, second, firstRoot: proofs.root(first), path: proofs.consistency(first, second) };
  }

  async #row(stored: StoredEntry, request: ProofRequest): Promise<RowProof> {
    const { facts } = stored;
    if (facts.kind !== 'rows') throw notFound();
    const { entry, parts } = stored.open();
    const candidates: number[] = [];
    for (const { context, body, position, time } of splitParts(entry)) {
      if (body.kind !== 'rows') continue;
      for (const row of rowsOfKey(body, request.row!))
        if (this.#readable(context, body.type, time + BigInt(row))) candidates.push(position - facts.position + row);
    }
    const asked = request.position === undefined ? undefined : request.position - facts.position;
    const index = candidates.find((row) => row === asked) ?? candidates[0];
    const proof = index === undefined ? null : await proveRow(facts, parts, index);
    if (proof === null) throw notFound();
    return proof;
  }

  /** Hard-deleted rows are still in the log until they are dropped from it; no caller sees them. */
  #readable(context: EntryContext, type: string, systemFrom: bigint): boolean {
    return !isClassified(type) && this.#sources.readable(context, type, systemFrom);
  }

  /** The statement of the branch's first entry, and a proof that the log before it is a prefix of the log of now. */
  #descent(stored: StoredEntry, name: string, size: number): NonNullable<EntryProof['branch']> {
    const { facts } = stored;
    const { body } = stored.open().entry;
    const statement = statementOf(body);
    if (body.kind !== 'branch' || body.change !== 'forked' || body.name !== name || statement === null) throw notFound();
    const { source, shares } = body;
    return { name, source, shares, statement, position: facts.position, fork: this.#prefix(facts.leaf, size) };
  }
}

function positionShown({ position }: ProofRequest, { facts }: StoredEntry): number | null {
  return position ?? (facts.positions === 0 ? null : facts.position);
}

const notFound = (): ServiceError =>
  new ServiceError('REL_NOT_FOUND', 'there is no such entry or row, or none that this credential may see');
