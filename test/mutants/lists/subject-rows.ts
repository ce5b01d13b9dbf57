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
    find: '      memory.xor(at, Math.min(target.at, at + SLICE_BYTES), (at - start) / BLOCK_BYTES);\n',
    replace: '',
    killedBy: rows,
  },
  {
    name: 'subject rows: all sections are sealed under the first key',
    file: seal,
    find: 'key[k] = secrets[s * SECRET_BYTES + k]!',
    replace: 'key[k] = secrets[k]!',
    killedBy: rows,
  },
  {
    name: 'subject rows: one nonce for all bodies',
    file: seal,
    find: '  memory.setNonce(nonce);\n',
    replace: '  memory.setNonce(new Uint8Array(12));\n',
    killedBy: rows,
  },
  {
    name: 'subject rows: two sections are sealed under one key',
    file: sections,
    find: "    assert(allDiffer(ids, KEY_ID_BYTES), 'no key has two sections, whose streams would be one');\n",
    replace: '',
    killedBy: rows,
  },
  {
    name: 'subject rows: rows of nobody belong to whoever came before',
    file: sections,
    find: '      ofRow[row] = NOBODY;\n',
    replace: '      ofRow[row] = last >= 0 ? ofRow[last]! : NOBODY;\n',
    killedBy: rows,
  },
  {
    name: 'subject rows: rows of a section come in any order',
    file: open,
    find: "      if (row <= last) throw malformedError('rows of sections out of order');\n",
    replace: '',
    killedBy: rows,
  },
  {
    name: 'subject rows: a key may open two sections',
    file: open,
    find: 'if (new Set(keyNames(ids)).size * KEY_ID_BYTES < ids.length) throw',
    replace: 'if (false) throw',
    killedBy: rows,
  },
  {
    name: 'subject rows: cells of erased rows are empty, not NULL',
    file: open,
    find: '    for (const row of erased.keys()) cells.nullAt(row);\n',
    replace: '',
    killedBy: rows,
  },
  {
    name: 'subject rows: a subject is the same in all tenants',
    file: entryCodec,
    find: 'this.#keyring.subjects.sealing(of, subject)',
    replace: 'this.#keyring.subjects.sealing(null, subject)',
    killedBy: rows,
  },
  {
    name: 'subject rows: a body whose rows are somebody’s is written as if they were nobody’s',
    file: entryCodec,
    find: "const sections = body.kind === 'rows' && body.subjects ? this.#sections(body, context) : null;",
    replace: 'const sections: SubjectSections | null = null;',
    killedBy: log,
  },
];
