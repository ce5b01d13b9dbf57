/** The registry of tokens, by id and by secret hash. Secrets are nowhere in it. */
import { deserialize, serialize } from 'node:v8';
import { assert } from '../../errors.ts';
import type { CommittedEntry, TokenRecord } from '../../log/entries/entry.ts';
import { compareText } from '../../log/values/value.ts';
import { CanonicalHash } from '../canonical-hash.ts';
import type { CheckpointReader, CheckpointWriter, Projection } from '../projection.ts';

export interface RegisteredToken {
  readonly record: TokenRecord;
  readonly mintedAt: bigint;
  /** When it was revoked or rotated away; null while it stands. Expiry is the reader's to judge. */
  readonly endedAt: bigint | null;
  /** The token that a rotation put in its place. */
  readonly replacedBy: string | null;
}

export class Tokens implements Projection {
  readonly name = 'directory';
  readonly formatVersion = 1;
  #tokensById = new Map<string, RegisteredToken>();
  /** Standing tokens only: an ended one must not be found by its secret. */
  #tokenIdsBySecretHash = new Map<string, string>();

  token(tokenId: string): RegisteredToken | undefined {
    return this.#tokensById.get(tokenId);
  }

  /** The token with this secret hash if it stands at `instant`: neither revoked, rotated away nor expired. */
  tokenBySecretHash(secretHash: string, instant: bigint): TokenRecord | undefined {
    const tokenId = this.#tokenIdsBySecretHash.get(secretHash);
    const tokenRecord = tokenId === undefined ? undefined : this.#tokensById.get(tokenId)?.record;
    return tokenRecord && instant < tokenRecord.expiresAt ? tokenRecord : undefined;
  }

  /** All tokens ever registered, ended ones included, by id in codepoint order. */
  tokens(): readonly RegisteredToken[] {
    return [...this.#tokensById.values()].sort((a, b) => compareText(a.record.id, b.record.id));
  }

  /** Tokens that are live at `instant`, which count toward the cap. */
  liveCount(instant: bigint): number {
    let count = 0;
    for (const id of this.#tokenIdsBySecretHash.values()) if (instant < this.#tokensById.get(id)!.record.expiresAt) count++;
    return count;
  }

  get size(): number {
    return this.#tokensById.size;
  }

  apply(tokenEntry: CommittedEntry): void {
    if (tokenEntry.body.kind !== 'token') return;
    const { change: tokenChange, token, replaces } = tokenEntry.body;
    if (tokenChange === 'revoked') return this.#endToken(token.id, tokenEntry.time, null);
    if (replaces !== null) this.#endToken(replaces, tokenEntry.time, token.id);
    assert(!this.#tokensById.has(token.id), 'a token id is given once');
    this.#tokensById.set(token.id, { record: token, mintedAt: tokenEntry.time, endedAt: null, replacedBy: null });
    this.#tokenIdsBySecretHash.set(token.secretHash, token.id);
  }

  async checkpoint(tokenCheckpoint: CheckpointWriter): Promise<void> {
    tokenCheckpoint.section('tokens', serialize([...this.#tokensById.values()]));
  }

  async restore(tokenCheckpoint: CheckpointReader): Promise<void> {
    const tokenBytes = tokenCheckpoint.section('tokens');
    assert(tokenBytes, 'a directory checkpoint has tokens');
    this.reset();
    for (const savedToken of deserialize(tokenBytes) as RegisteredToken[]) {
      this.#tokensById.set(savedToken.record.id, savedToken);
      if (savedToken.endedAt === null) this.#tokenIdsBySecretHash.set(savedToken.record.secretHash, savedToken.record.id);
    }
  }

  reset(): void {
    this.#tokensById.clear();
    this.#tokenIdsBySecretHash.clear();
  }

  digest(): string {
    const tokensHash = new CanonicalHash();
    for (const token of this.tokens()) tokensHash.value(token);
    return tokensHash.hex();
  }

  #endToken(tokenId: string, tokenEndedAt: bigint, replacedBy: string | null): void {
    const endedToken = this.#tokensById.get(tokenId);
    assert(endedToken && endedToken.endedAt === null, 'only a standing token can end');
    this.#tokensById.set(tokenId, { ...endedToken, endedAt: tokenEndedAt, replacedBy });
    this.#tokenIdsBySecretHash.delete(endedToken.record.secretHash);
  }
}
