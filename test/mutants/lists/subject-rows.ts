/** Mistakes about rows that are sealed by subject: what shows without a key, what is taken for an erasure, what is said twice. */
import type { Mutant } from '../mutant.ts';

const rows = ['test/log/entries/subject-rows.test.ts'];
const log = ['test/log/subject-log.test.ts'];
const seal = 'src/log/entries/section-sealer.ts';
const open = 'src/log/entries/section-opener.ts';
const sections = 'src/log/entries/subject-sections.ts';
const entryCodec = 'src/log/entries/entry-codec.ts';

export const mutants: readonly Mutant[] = [
  {
    name: 'subject rows: sections are written as they are',
    file: seal,
    find: '      sectionMemory.xor(\n        xorOffset,\n        Math.min(sectionWriter.at, xorOffset + SECTION_SLICE_BYTES),\n        (xorOffset - sectionStart) / CHACHA_BLOCK_BYTES,\n      );\n',
    replace: '',
    killedBy: rows,
  },
  {
    name: 'subject rows: all sections are sealed under the first key',
    file: seal,
    find: 'sectionKey[k] = keySecrets[s * SECRET_BYTES + k]!',
    replace: 'sectionKey[k] = keySecrets[k]!',
    killedBy: rows,
  },
  {
    name: 'subject rows: one nonce for all bodies',
    file: seal,
    find: '  sectionMemory.setNonce(sectionNonce);\n',
    replace: '  sectionMemory.setNonce(new Uint8Array(12));\n',
    killedBy: rows,
  },
  {
    name: 'subject rows: two sections are sealed under one key',
    file: sections,
    find: "    assert(haveDistinctKeyIds(subjectKeyIds, KEY_ID_BYTES), 'no key has two sections, whose streams would be one');\n",
    replace: '',
    killedBy: rows,
  },
  {
    name: 'subject rows: rows of nobody belong to whoever came before',
    file: sections,
    find: '      sectionOfRow[subjectRow] = NO_SUBJECT;\n',
    replace: '      sectionOfRow[subjectRow] = lastSubjectRow >= 0 ? sectionOfRow[lastSubjectRow]! : NO_SUBJECT;\n',
    killedBy: rows,
  },
  {
    name: 'subject rows: rows of a section come in any order',
    file: open,
    find: "      if (sealedRow <= lastSealedRow) throw malformedError('rows of sections out of order');\n",
    replace: '',
    killedBy: rows,
  },
  {
    name: 'subject rows: a key may open two sections',
    file: open,
    find: 'if (new Set(keyNames(subjectKeyIds)).size * KEY_ID_BYTES < subjectKeyIds.length) throw',
    replace: 'if (false) throw',
    killedBy: rows,
  },
  {
    name: 'subject rows: cells of erased rows are empty, not NULL',
    file: open,
    find: '    for (const erasedRow of erasedRows.keys()) openedCells.nullAt(erasedRow);\n',
    replace: '',
    killedBy: rows,
  },
  {
    name: 'subject rows: a subject is the same in all tenants',
    file: entryCodec,
    find: 'this.#sealerKeyring.subjects.sealing(keyTenant, subject)',
    replace: 'this.#sealerKeyring.subjects.sealing(null, subject)',
    killedBy: rows,
  },
  {
    name: 'subject rows: a body whose rows are somebody’s is written as if they were nobody’s',
    file: entryCodec,
    find: "const sections = body.kind === 'rows' && body.subjects ? this.#subjectSections(body, context) : null;",
    replace: 'const sections: SubjectSections | null = null;',
    killedBy: log,
  },
];
