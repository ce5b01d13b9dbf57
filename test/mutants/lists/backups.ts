/** Mistakes that would let a backup lie, half of something pass for whole, or the erased come back. */
import type { Mutant } from '../mutant.ts';

const store = ['test/backups.test.ts'];
const crash = ['test/simulation/backup-crash.test.ts'];
const erased = ['test/governance/erasure/restore.test.ts'];

export const mutants: readonly Mutant[] = [
  {
    name: 'backup: a document is believed unsigned',
    file: 'src/log/backup-artefact.ts',
    find: 'if (!publicKeys.some((key) => verifySignature(key, message, signed))) {',
    replace: 'if (publicKeys.length === 0) {',
    killedBy: store,
  },
  {
    name: 'backup: a later version is read as if it were known',
    file: 'src/log/backup-artefact.ts',
    find: 'if (version !== ARTEFACT_VERSION)',
    replace: 'if (version < ARTEFACT_VERSION)',
    killedBy: store,
  },
  {
    name: 'backup: names of files may lead anywhere',
    file: 'src/log/backup-artefact.ts',
    find: "if (typeof name !== 'string' || !pattern.test(name) || seen.has(name))",
    replace: "if (typeof name !== 'string' || seen.has(name))",
    killedBy: store,
  },
  {
    name: 'backup: the head may be of another tree than the document',
    file: 'src/log/backup-artefact.ts',
    find: 'if (head.size !== artefact.tree_size || hexOf(head.root) !== artefact.root)',
    replace: 'if (hexOf(head.root) !== artefact.root)',
    killedBy: store,
  },
  {
    name: 'backup: the copy is not read back',
    file: 'src/log/backup.ts',
    find: '    await this.#readBack();\n',
    replace: '',
    killedBy: store,
  },
  {
    name: 'backup: the document is written before the copy',
    file: 'src/log/backup.ts',
    find: '    await disk.makeDirectory(`${this.#home}/log`);\n',
    replace:
      '    await disk.makeDirectory(`${this.#home}/log`);\n    await disk.replaceFile(`${this.#home}/${ARTEFACT_NAME}`, new Uint8Array(0));\n',
    killedBy: crash,
  },
  {
    name: 'backup: what a failed one copied stays',
    file: 'src/log/backup.ts',
    find: 'await removeTree(disk, home).catch(() => undefined);',
    replace: '',
    killedBy: [...store, ...crash],
  },
  {
    name: 'backup: what was cut off is never cleared',
    file: 'src/log/backup.ts',
    find: '    await clearUnfinished(options);\n',
    replace: '',
    killedBy: [...store, ...crash],
  },
  {
    name: 'backup: backups of other stores are cleared as well',
    file: 'src/log/backup.ts',
    find: '!name.startsWith(prefixOf(capture.manifest.logId)) || ',
    replace: '',
    killedBy: store,
  },
  {
    name: 'copies: a copy is not on the disk when it is said to be',
    file: 'src/log/file-copy.ts',
    find: '      await to.sync();\n',
    replace: '',
    killedBy: crash,
  },
  {
    name: 'restore: checksums are not compared',
    file: 'src/log/restore.ts',
    find: 'if (found !== sha256)',
    replace: "if (found === '')",
    killedBy: store,
  },
  {
    name: 'restore: a directory that holds something is taken',
    file: 'src/log/restore.ts',
    find: 'if (names.length > 0 && !names.includes(MARKER))',
    replace: 'if (names.length > 99)',
    killedBy: store,
  },
  {
    name: 'restore: what is being restored can be opened',
    file: 'src/log/restore.ts',
    find: 'if ((await disk.size(`${directory}/${MARKER}`)) === undefined) return undefined;',
    replace: 'if (disk) return undefined;',
    killedBy: crash,
  },
  {
    name: 'restore: the mark goes before the rest is cleared',
    file: 'src/log/restore.ts',
    find: '    if (name === MARKER) continue;\n',
    replace: '',
    killedBy: crash,
  },
  {
    name: 'restore: keys that the log says were destroyed are kept',
    file: 'src/log/restore.ts',
    find: 'if (opens(keyring, id)) await subjects.destroy([id], receipt);',
    replace: 'if (id === receipt) await subjects.destroy([id], receipt);',
    killedBy: erased,
  },
  {
    name: 'restore: projections that differ are let pass',
    file: 'src/backups.ts',
    find: 'const same = report.projections.every(({ match }) => match);',
    replace: 'const same = report.projections.length > 0;',
    killedBy: store,
  },
  {
    name: 'restore: digests from before an erasure are held against what is left',
    file: 'src/backups.ts',
    find: "if (artefact.erased_keys !== erased.length) return 'somebody was erased since it was backed up';",
    replace: '',
    killedBy: erased,
  },
  {
    name: 'backup: digests of a later state are recorded',
    file: 'src/backups.ts',
    find: 'projections.projector.watermark === capture.head.size',
    replace: 'projections.projector.watermark >= capture.head.size',
    killedBy: store,
  },
  {
    name: 'backup: a file that was written anew meanwhile ends it',
    file: 'src/backups.ts',
    find: 'const ATTEMPTS = 3;',
    replace: 'const ATTEMPTS = 1;',
    killedBy: store,
  },
];
