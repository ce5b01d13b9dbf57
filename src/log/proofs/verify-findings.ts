/** Faults and remarks of one verification, in the order in which they were met. No fault is lost: beyond a bound they are counted. */

/** A fault in the log. */
export interface Finding {
  /** Path below the data directory, with `@` and a byte offset where there is one. */
  readonly place: string;
  /** Number of the leaf concerned, where known. */
  readonly leaf: number | null;
  readonly what: string;
}

const verifyFindingsMax = 1000;

export class VerifyFindings {
  readonly findings: Finding[] = [];
  readonly notes: string[] = [];
  #omittedFindings = 0;

  /** `location`: a path below the data directory, and `@` with a byte offset. */
  add(location: string, leaf: number | null, findingText: string): void {
    if (this.findings.length < verifyFindingsMax) this.findings.push({ place: location, leaf, what: findingText });
    else this.#omittedFindings++;
  }

  /** Notes what is in order but worth knowing. */
  note(text: string): void {
    this.notes.push(text);
  }

  /** Says how many faults are not listed. */
  close(): void {
    if (this.#omittedFindings > 0) this.note(`${this.#omittedFindings} more findings are left out`);
  }
}

export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
