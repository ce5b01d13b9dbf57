/** What was erased, subject by subject, as far as whoever asked was told. */

export interface ErasedOnce {
  /** null: the power went before anybody was told. */
  id: string | null;
  /** As it was first shown; null while nobody was shown it. */
  receipt: string | null;
}

export interface SubjectBelief {
  /** Oldest first. */
  readonly erasures: ErasedOnce[];
  /** Whether rows were written since: a key of theirs is there to destroy. */
  written: boolean;
  /** A crash or a restore left open whether there is one, or another erasure. */
  unsure: boolean;
}

export class Subjects {
  readonly #known = new Map<string, SubjectBelief>();
  readonly #isUnsure: boolean;

  /** `isUnsure`: there may be keys of who was never heard of. */
  constructor(isUnsure = false) {
    this.#isUnsure = isUnsure;
  }

  of(tenant: string | null, subject: string): SubjectBelief {
    const name = JSON.stringify([tenant, subject]);
    const known = this.#known.get(name) ?? { erasures: [], written: false, unsure: this.#isUnsure };
    this.#known.set(name, known);
    return known;
  }

  erased(): { readonly tenant: string | null; readonly subject: string }[] {
    const known = [...this.#known].filter(([, { erasures }]) => erasures.length > 0);
    return known.map(([name]) => {
      const [tenant, subject] = JSON.parse(name) as [string | null, string];
      return { tenant, subject };
    });
  }

  /** As they are of a store that was made of a backup: keys are those of now, erasures those of then. */
  restored(): Subjects {
    const copy = this.copy(true);
    for (const belief of copy.#known.values()) belief.unsure = true;
    return copy;
  }

  copy(isUnsure = this.#isUnsure): Subjects {
    const copy = new Subjects(isUnsure);
    for (const [name, { erasures, written, unsure }] of this.#known) {
      copy.#known.set(name, { erasures: erasures.map((each) => ({ ...each })), written, unsure });
    }
    return copy;
  }
}
