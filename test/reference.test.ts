/** Lists in docs that are those of the code: settings, errors, relations that have rows. `npm test -- --update` rewrites them. */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { settingsTable } from '../src/config.ts';
import { errorTable } from '../src/errors.ts';
import { filledRelations } from '../src/planner/system-catalogue/relations.ts';

const docs = join(import.meta.dirname, '../docs');

const tables: Readonly<Record<string, readonly [page: string, text: string]>> = {
  settings: [
    'reference.md',
    table(
      ['setting', 'default', 'meaning'],
      Object.entries(settingsTable).map(([name, { defaultText, help }]) => [`\`${name}\``, defaultText, help]),
    ),
  ],
  errors: [
    'reference.md',
    table(
      ['code', 'status', 'when'],
      Object.entries(errorTable).map(([code, { status, meaning }]) => [`\`${code}\``, String(status), meaning]),
    ),
  ],
  filled: ['postgres.md', `${filledRelations.map((path) => `\`${path.replace('pg_catalog.', '')}\``).join(', ')}\n`],
};

test.each(Object.entries(tables))('the docs have the list of %s as the code has it', (name, [page, wanted]) => {
  const path = join(docs, page);
  const readme = readFileSync(path, 'utf8');
  const region = new RegExp(`(<!-- ${name} -->\n)[^]*?(<!-- /${name} -->)`);
  expect(readme).toMatch(region);
  const fresh = readme.replace(region, (_, head: string, tail: string) => head + wanted + tail);
  if (process.env['ANNALS_UPDATE'] === '1') writeFileSync(path, fresh);
  else expect(readme).toBe(fresh);
});

function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]): string => `| ${cells.map((cell) => cell.replaceAll('|', '\\|')).join(' | ')} |\n`;
  return line(head) + line(head.map(() => '---')) + rows.map(line).join('');
}
