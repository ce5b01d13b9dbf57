/** Rare branches that a run must have gone through, or it has shown nothing. */
export interface Marks {
  tornTailCut: number;
  rolled: number;
  poisoned: number;
  crashInsideRecovery: number;
  faultInsideRecovery: number;
  killed: number;
  restartedAfterFailure: number;
  poweredOff: number;
  shortWrite: number;
  misdirected: number;
  haltOnCorruption: number;
  closedCleanly: number;
  /** A disk without room for a while, which the log outlived. */
  outlivedFull: number;
  /** Opened from a saved state of the log. */
  resumed: number;
  /** A saved state was of no use, and everything was replayed. */
  resumeRefused: number;
}

export function noMarks(): Marks {
  return {
    tornTailCut: 0,
    rolled: 0,
    poisoned: 0,
    crashInsideRecovery: 0,
    faultInsideRecovery: 0,
    killed: 0,
    restartedAfterFailure: 0,
    poweredOff: 0,
    shortWrite: 0,
    misdirected: 0,
    haltOnCorruption: 0,
    closedCleanly: 0,
    outlivedFull: 0,
    resumed: 0,
    resumeRefused: 0,
  };
}
