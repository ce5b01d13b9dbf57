/** Choices that a seed decides: the same in every run and on every machine. */
export class Choices {
  #state: number;

  /** The parts are mixed, so that neighbours share nothing. */
  constructor(...parts: readonly number[]) {
    this.#state = 0x9e3779b9;
    for (const part of parts) this.#state = mixed((this.#state + part) | 0);
  }

  /** 0 … below-1. */
  below(limit: number): number {
    this.#state = (this.#state + 0x6d2b79f5) | 0;
    return (mixed(this.#state) >>> 0) % limit;
  }

  /** low … high, both included. */
  between(low: number, high: number): number {
    return low + this.below(high - low + 1);
  }

  /** True in `percent` of 100 cases. */
  chance(percent: number): boolean {
    return this.below(100) < percent;
  }

  of<T>(list: readonly T[]): T {
    return list[this.below(list.length)]!;
  }

  /** One of the names, as often as its weight says. */
  weighted<K extends string>(weights: Readonly<Record<K, number>>): K {
    const entries = Object.entries(weights) as [K, number][];
    let left = this.below(entries.reduce((sum, [, weight]) => sum + weight, 0));
    for (const [name, weight] of entries) {
      if (left < weight) return name;
      left -= weight;
    }
    return entries[0]![0];
  }

  shuffled<T>(list: readonly T[]): T[] {
    const result = [...list];
    for (let i = result.length - 1; i > 0; i--) {
      const other = this.below(i + 1);
      [result[i], result[other]] = [result[other]!, result[i]!];
    }
    return result;
  }
}

/** The finaliser of MurmurHash3. */
function mixed(value: number): number {
  let h = value;
  h = Math.imul(h ^ (h >>> 16), 0x85ebca6b);
  h = Math.imul(h ^ (h >>> 13), 0xc2b2ae35);
  return h ^ (h >>> 16);
}
