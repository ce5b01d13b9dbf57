/** Mistakes about rows that are sealed by subject: what shows without a key, what is taken for an erasure, what is said twice. */
import type { Mutant } from '../mutant.ts';

const rows = ['test/log/subject-rows.test.ts'];
const log = ['test/log/subject-log.test.ts'];
const memory = ['test/log/section-memory.test.ts'];
const seal = 'src/log/subject-seal.ts';
const open = 'src/log/subject-open.ts';
const sections = 'src/log/subject-sections.ts';
const entryCodec = 'src/log/entry-codec.ts';
const opener = 'src/log/frame-opener.ts';

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
    name: 'subject rows: every slice of a section begins the stream anew',
    file: seal,
    find: '(at - start) / BLOCK_BYTES',
    replace: '0',
    killedBy: rows,
  },
  {
    name: 'subject rows: salts of sealed rows come from a seed that anybody reads',
    file: seal,
    find: '    spreadSalts(target.bytes, start, sealed, salts, first, end);\n',
    replace: '    spreadSalts(saltsOf(seed, rows), 0, sealed, salts, first, end);\n',
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
    name: 'subject rows: what is told apart by a code is told apart though it is one text',
    file: sections,
    find: '    const known = this.#ofSubject.get(subject);\n',
    replace: '    const known = undefined as number | undefined;\n',
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
    name: 'subject rows: rows of two sections are taken from both',
    file: open,
    find: ' || taken[row] === 1) throw',
    replace: ') throw',
    killedBy: rows,
  },
  {
    name: 'subject rows: rows of a section come in any order',
    file: open,
    find: "      if (row <= last) throw malformed('rows of sections out of order');\n",
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
    name: 'subject rows: a section is as short as it likes',
    file: open,
    find: "    if (size < rows * this.#rowBytes + this.#flagBytes) throw malformed('a section too short for its rows');\n",
    replace: '',
    killedBy: rows,
  },
  {
    name: 'subject rows: a section may go on after its cells',
    file: open,
    find: "    if (this.#parts.some(({ at, to }) => at !== to)) throw malformed('a section with bytes after its end');\n",
    replace: '',
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
    name: 'subject rows: salts of erased rows are handed out as if they were there',
    file: 'src/log/rows-codec.ts',
    find: '    if (erased.has(row)) continue;\n',
    replace: '',
    killedBy: rows,
  },
  {
    name: 'subject rows: a hash that a body states wrongly is found when the row is gone',
    file: entryCodec,
    find: '    if (sealed && hashes) checkSealedHashes(sealed, hashes);\n',
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
    name: 'subject rows: a tenant is all of its path',
    file: entryCodec,
    find: "path.split('/', 1)[0]!",
    replace: 'path',
    killedBy: rows,
  },
  {
    name: 'subject rows: a body whose rows are somebody’s is written as if they were nobody’s',
    file: entryCodec,
    find: "const sections = body.kind === 'rows' && body.subjects ? this.#sections(body, context) : null;",
    replace: 'const sections: SubjectSections | null = null;',
    killedBy: log,
  },
  {
    name: 'subject rows: a key that a thread was not given is one that is destroyed',
    file: opener,
    find: '        if (missing.length > 0) return { missing };\n',
    replace: '',
    killedBy: log,
  },
  {
    name: 'subject rows: rows that a thread found erased are not counted',
    file: opener,
    find: 'erased: entry.body.dropped?.length ?? 0',
    replace: 'erased: 0',
    killedBy: log,
  },
  {
    name: 'subject rows: rows that are found erased in the turn are not counted',
    file: 'src/log/verify.ts',
    find: 'this.#rowsErased += body.dropped?.length ?? 0;',
    replace: 'this.#rowsErased += 0;',
    killedBy: log,
  },
  {
    name: 'subject rows: keys stay with what was sealed under them',
    file: 'src/log/bulk-sealer.ts',
    find: '    this.request.sections?.secrets.fill(0);\n',
    replace: '',
    killedBy: log,
  },
  {
    name: 'subject rows: a key stays where the next body is sealed',
    file: 'src/log/section-memory.ts',
    find: '    this.#head.fill(0);\n',
    replace: '',
    killedBy: memory,
  },
];
