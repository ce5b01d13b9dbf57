/**
 * Cells that nobody but their owners may ever be sent: each holds a text or a number that stands nowhere else. A scan looks
 * for them in whatever left the server, as text and as the eight bytes that columnar formats write of an integer.
 */

/** Whose cells: who may know one kind may know all of it. */
export type Secret = 'rows of the victim' | 'masked cells' | 'rows behind a condition' | 'guarded rows';

interface Canary {
  readonly secret: Secret;
  readonly where: string;
}

export class Canaries {
  readonly #known = new Map<string, Canary>();
  #made = 0;

  /** 16 characters that no other cell has. */
  text(secret: Secret, where: string): string {
    const text = `c4n4ry${this.#digits()}`;
    this.#known.set(text, { secret, where });
    return text;
  }

  /** Large enough that four million times it is no 64-bit integer. */
  number(secret: Secret, where: string): bigint {
    const text = `7777${this.#digits().replaceAll(/\D/g, '3').slice(0, 9)}`;
    this.#known.set(text, { secret, where });
    return BigInt(text);
  }

  get size(): number {
    return this.#known.size;
  }

  /** Where the canaries in these bytes come from that a reader with this knowledge must not see. */
  in(bytes: Buffer, knows: ReadonlySet<Secret>): string[] {
    const found = new Set<string>();
    for (const [text] of bytes.toString('latin1').matchAll(/c4n4ry[0-9a-f]{10}|7777\d{9}/g)) {
      const canary = this.#known.get(text);
      if (canary !== undefined && !knows.has(canary.secret)) found.add(canary.where);
    }
    return [...found];
  }

  /** The same where integers may be eight bytes each. */
  inColumns(bytes: Buffer, knows: ReadonlySet<Secret>): string[] {
    const found = this.in(bytes, knows);
    const cell = Buffer.alloc(8);
    for (const [text, { secret, where }] of this.#known) {
      if (!text.startsWith('7777') || knows.has(secret)) continue;
      cell.writeBigInt64LE(BigInt(text));
      if (bytes.includes(cell)) found.push(where);
    }
    return found;
  }

  /** Ten hex digits, no two times the same ones. */
  #digits(): string {
    this.#made++;
    const scrambled = (BigInt(this.#made) * 0x9e37_79b9_7f4a_7c15n) & 0xff_ffff_ffffn;
    return scrambled.toString(16).padStart(10, '0');
  }
}
