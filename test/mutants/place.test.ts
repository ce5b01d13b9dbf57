/** A mutant's mistake is found after its line moved or was formatted anew, and never in another place. */
import { describe, expect, test } from 'vitest';
import { placeOf } from './place.ts';

const source = `export function first(a: number): number {
  return a + 1;
}

class Box {
  readonly #size = 1;

  size(
    a: number,
    b: number,
  ): number {
    if (
      a > b
    )
      return this.#size;
    return a + 1;
  }

  async #close(): Promise<void> {
    this.size(1, 2);
    await this.stop();
  }
}

const limit = (a: number): number => a + 2;
`;

const found = (find: string, symbol?: string): string | null => {
  const place = placeOf(source, { find, ...(symbol === undefined ? {} : { in: symbol }) });
  return place && source.slice(place.from, place.to);
};

describe('a pattern', () => {
  test('must be there once', () => {
    expect(found('a + 2')).toBe('a + 2');
    expect([found('return a + 1;'), found('a + 3')]).toEqual([null, null]);
  });

  test('is found however it is formatted', () => {
    expect(found('if (  a > b\n)')).toBe('if (\n      a > b\n    )');
    expect(found('if (a > b)')).toBe(null);
    expect(found('( a > b ) return this.#size;')).toBe('(\n      a > b\n    )\n      return this.#size;');
  });

  test('may name the function or method that it is in', () => {
    expect(found('return a + 1;', 'first')).toBe('return a + 1;');
    expect(found('return a + 1;', 'size')).toBe('return a + 1;');
    expect(found('return a + 1;', 'Box')).toBe('return a + 1;');
    expect(found('return a + 1;', 'Box.size')).toBe('return a + 1;');
    expect(found('a + 2', 'limit')).toBe('a + 2');
    expect(found('this', '#close')).toBe(null);
    expect(found('await this', 'Box.#close')).toBe('await this');
  });

  test('is not found in another one, nor in one that is not there', () => {
    expect([found('a > b', 'first'), found('a + 2', 'Box'), found('a + 2', 'nothing'), found('a + 1', 'first.size')]).toEqual([
      null,
      null,
      null,
      null,
    ]);
  });
});
