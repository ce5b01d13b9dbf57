/** The registry as authentication sees it: live tokens only. A token that was revoked or rotated away is as if never made. */
import type { TokenRecord } from '../../log/entries/entry.ts';
import type { Tokens } from '../../projections/tokens/projection.ts';
import type { TokenDirectory } from './bearer-tokens.ts';

export class TokenRegistry implements TokenDirectory {
  readonly #tokenDirectory: Pick<Tokens, 'token' | 'tokens' | 'size'>;

  constructor(directory: Pick<Tokens, 'token' | 'tokens' | 'size'>) {
    this.#tokenDirectory = directory;
  }

  token(id: string): TokenRecord | undefined {
    const token = this.#tokenDirectory.token(id);
    return token === undefined || token.endedAt !== null ? undefined : token.record;
  }

  /** In the order in which they were minted: ids carry their time. */
  tokens(): readonly TokenRecord[] {
    return this.#tokenDirectory
      .tokens()
      .filter((token) => token.endedAt === null)
      .map((token) => token.record);
  }

  /** Every token ever registered: an installation that once had credentials does not fall open when the last one ends. */
  get tokenCount(): number {
    return this.#tokenDirectory.size;
  }
}
