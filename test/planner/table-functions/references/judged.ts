/** Judgements about which rows are one thing, as one list; rows go by `Type id`. */
interface Named {
  readonly type: string;
  readonly id: string;
}

interface Judgement {
  readonly a: string;
  readonly b: string;
  readonly isOne: boolean;
  readonly path: string | null;
  readonly at: bigint;
}

export class Judged {
  #all: Judgement[] = [];

  copy(): Judged {
    const copy = new Judged();
    copy.#all = [...this.#all];
    return copy;
  }

  /** Those that were made by an instant, in a path or below it. */
  seen(path: string | null, system: bigint): Judged {
    const seen = new Judged();
    seen.#all = this.#all.filter((each) => each.at <= system && isWithin(path, each.path));
    return seen;
  }

  /** A new one: what it comes to. It is written where it changes anything. */
  judge(isOne: boolean, a: Named, b: Named, path: string | null, at: bigint, isThere: (id: string) => boolean): string {
    const [one, other] = [`${a.type} ${a.id}`, `${b.type} ${b.id}`];
    const seen = this.seen(path, at);
    if (isOne) {
      const groups = seen.groups(isThere);
      if (seen.arePartedBy(groups(one), groups(other), isThere)) return 'REL_CONFLICT';
    }
    const before = seen.#all.findLast((each) => isPair(each, one, other));
    if (before?.isOne === isOne) return 'same';
    this.#all.push({ a: one, b: other, isOne, path, at });
    return 'changed';
  }

  /** The newest of each pair whose rows are both there, in the order in which they were made. */
  standing(isThere: (id: string) => boolean): readonly Judgement[] {
    return this.#all.filter(
      (each, i) => isThere(each.a) && isThere(each.b) && !this.#all.slice(i + 1).some((later) => isPair(later, each.a, each.b)),
    );
  }

  /** Rows that were judged to be one thing, joined in that order; further links are joined after them. */
  groups(
    isThere: (id: string) => boolean,
    links: readonly (readonly [string, string])[] = [],
  ): (id: string) => ReadonlySet<string> {
    const groups = new Map<string, Set<string>>();
    const of = (id: string): Set<string> => groups.get(id) ?? new Set([id]);
    const judged = this.standing(isThere).flatMap(({ a, b, isOne }) => (isOne ? [[a, b] as const] : []));
    for (const [a, b] of [...judged, ...links]) {
      if (this.arePartedBy(of(a), of(b), isThere)) continue;
      const both = new Set([...of(a), ...of(b)]);
      for (const id of both) groups.set(id, both);
    }
    return of;
  }

  arePartedBy(left: ReadonlySet<string>, right: ReadonlySet<string>, isThere: (id: string) => boolean): boolean {
    return this.standing(isThere).some(
      ({ a, b, isOne }) => !isOne && ((left.has(a) && right.has(b)) || (left.has(b) && right.has(a))),
    );
  }
}

function isPair({ a, b }: Judgement, one: string, other: string): boolean {
  return (a === one && b === other) || (a === other && b === one);
}

function isWithin(path: string | null, inner: string | null): boolean {
  if (path === null || inner === null) return path === inner;
  return inner === path || inner.startsWith(`${path}/`);
}
