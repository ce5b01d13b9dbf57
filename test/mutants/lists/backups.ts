/** Mistakes that would let a backup lie, half of something pass for whole, or the erased come back. */
import type { Mutant } from '../mutant.ts';

const store = ['test/backups.test.ts'];
const crash = ['test/simulation/backup-crash.test.ts'];
const digests = ['test/backup-digests.test.ts'];

export const mutants: readonly Mutant[] = [
  {
    name: 'backup: a document is believed unsigned',
    file: 'src/log/backup/backup-artefact.ts',
    find: 'if (!publicKeys.some((signingKey) => verifySignature(signingKey, signedMessage, artefactSignature))) {',
    replace: 'if (publicKeys.length === 0) {',
    killedBy: store,
  },
  {
    name: 'backup: the copy is not read back',
    file: 'src/log/backup/backup-copy.ts',
    find: '(diskBehindCopy) => this.#checkCopy(diskBehindCopy)',
    replace: 'async () => undefined',
    killedBy: store,
  },
  {
    name: 'backup: the document is written before the copy',
    file: 'src/log/backup/backup-copy.ts',
    find: '    await disk.makeDirectory(`${backupHome}/log`);\n',
    replace:
      '    await disk.makeDirectory(`${backupHome}/log`);\n    await disk.replaceFile(`${backupHome}/backup.json`, new Uint8Array(0));\n',
    killedBy: crash,
  },
  {
    name: 'restore: checksums are not compared',
    file: 'src/log/backup/backup-restore.ts',
    find: 'if (copiedDigest !== sha256)',
    replace: "if (copiedDigest === '')",
    killedBy: store,
  },
  {
    name: 'restore: projections that differ are let pass',
    file: 'src/upkeep/store-restores.ts',
    find: 'restoreReport.projections.filter(({ match }) => !match)',
    replace: 'restoreReport.projections.filter(({ match }) => match === undefined)',
    killedBy: [...store, ...digests],
  },
  {
    name: 'backup: digests hold though rows were dropped from the files since',
    file: 'src/upkeep/store-backups.ts',
    find: 'if (savedState && !backupArtefact.projections && !haveFilesChanged(captureBefore, logCapture))',
    replace: 'if (savedState && !backupArtefact.projections)',
    killedBy: digests,
  },
];
