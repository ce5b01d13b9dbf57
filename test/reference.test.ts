/** The tables of settings and errors in docs/reference.md are those of the code. `npm test -- --update` rewrites them. */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { settingsTable } from '../src/config.ts';
import { errorTable } from '../src/errors.ts';

const path = join(import.meta.dirname, '../docs/reference.md');

const tables: Readonly<Record<string, string>> = {
  settings: table(
    ['setting', 'default', 'meaning'],
    Object.entries(settingsTable).map(([name, { defaultText, help }]) => [`\`${name}\``, defaultText, help]),
  ),
  errors: table(
    ['code', 'status', 'when'],
    Object.entries(errorTable).map(([code, { status, meaning }]) => [`\`${code}\``, String(status), meaning]),
  ),
};

test.each(Object.entries(tables))('docs/reference.md has the table of %s as the code has it', (name, wanted) => {
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
