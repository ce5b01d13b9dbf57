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
  #tokens = new Map<string, RegisteredToken>();
  /** Standing tokens only: an ended one must not be found by its secret. */
  #bySecret = new Map<string, string>();

  token(id: string): RegisteredToken | undefined {
    return this.#tokens.get(id);
  }

  /** The token with this secret hash if it stands at `instant`: neither revoked, rotated away nor expired. */
  tokenBySecretHash(secretHash: string, instant: bigint): TokenRecord | undefined {
    const id = this.#bySecret.get(secretHash);
    const record = id === undefined ? undefined : this.#tokens.get(id)?.record;
    return record && instant < record.expiresAt ? record : undefined;
  }

  /** All tokens ever registered, ended ones included, by id in codepoint order. */
  tokens(): readonly RegisteredToken[] {
    return [...this.#tokens.values()].sort((a, b) => compareText(a.record.id, b.record.id));
  }

  /** Tokens that are live at `instant`, which count toward the cap. */
  liveCount(instant: bigint): number {
    let count = 0;
    for (const id of this.#bySecret.values()) if (instant < this.#tokens.get(id)!.record.expiresAt) count++;
    return count;
  }

  get size(): number {
    return this.#tokens.size;
  }

  apply(entry: CommittedEntry): void {
    if (entry.body.kind !== 'token') return;
    const { change, token, replaces } = entry.body;
    if (change === 'revoked') return this.#end(token.id, entry.time, null);
    if (replaces !== null) this.#end(replaces, entry.time, token.id);
    assert(!this.#tokens.has(token.id), 'a token id is given once');
    this.#tokens.set(token.id, { record: token, mintedAt: entry.time, endedAt: null, replacedBy: null });
    this.#bySecret.set(token.secretHash, token.id);
  }

  async checkpoint(target: CheckpointWriter): Promise<void> {
    target.section('tokens', serialize([...this.#tokens.values()]));
  }

  async restore(source: CheckpointReader): Promise<void> {
    const bytes = source.section('tokens');
    assert(bytes, 'a directory checkpoint has tokens');
    this.reset();
    for (const token of deserialize(bytes) as RegisteredToken[]) {
      this.#tokens.set(token.record.id, token);
      if (token.endedAt === null) this.#bySecret.set(token.record.secretHash, token.record.id);
    }
  }

  reset(): void {
    this.#tokens.clear();
    this.#bySecret.clear();
  }

  digest(): string {
    const hash = new CanonicalHash();
    for (const token of this.tokens()) hash.value(token);
    return hash.hex();
  }

  #end(id: string, at: bigint, replacedBy: string | null): void {
    const token = this.#tokens.get(id);
    assert(token && token.endedAt === null, 'only a standing token can end');
    this.#tokens.set(id, { ...token, endedAt: at, replacedBy });
    this.#bySecret.delete(token.record.secretHash);
  }
}
