/** CLIENT, INFO, CONFIG and COMMAND, by which clients of Redis inspect a server. */
import { type KvCommandRow, upper } from './command.ts';
import { respRefusals } from './errors.ts';
import { globOf } from './glob.ts';
import type { RespReplies } from './replies.ts';

interface ClientInfo {
  readonly id: number;
  readonly name: string;
  readonly ip: string | null;
}

/** The name that the connection has from here on; null: as it was. */
export function client(replies: RespReplies, words: readonly Buffer[], { id, name, ip }: ClientInfo): string | null {
  const sub = upper(words[1]!);
  switch (sub) {
    case 'ID':
      replies.integer(id);
      return null;
    case 'GETNAME':
      if (name === '') replies.nothing();
      else replies.bulk(name);
      return null;
    case 'SETNAME': {
      const [, , given] = words;
      if (words.length !== 3 || /[^!-~]/.test(given!.toString('latin1'))) throw respRefusals.syntax();
      replies.simple('OK');
      return given!.toString();
    }
    case 'SETINFO':
      if (words.length !== 4) throw respRefusals.syntax();
      replies.simple('OK');
      return null;
    case 'INFO':
      replies.bulk(`id=${id} addr=${ip ?? ''} name=${name} db=0 resp=${replies.protocol}\n`);
      return null;
  }
  throw respRefusals.subcommand('CLIENT', words[1]!.toString('latin1'));
}

export function info(replies: RespReplies): void {
  const lines = ['# Server', 'redis_version:7.2.0', 'redis_mode:standalone', 'server_name:annals', '# Persistence', 'loading:0'];
  replies.bulk(`${[...lines, '# Replication', 'role:master'].join('\r\n')}\r\n`);
}

/** Settings that clients read; none can be changed. */
const settings: Readonly<Record<string, string>> = { appendonly: 'yes', databases: '1', maxmemory: '0', save: '' };

export function config(replies: RespReplies, words: readonly Buffer[]): void {
  if (upper(words[1]!) !== 'GET') throw respRefusals.subcommand('CONFIG', words[1]!.toString('latin1'));
  if (words.length < 3) throw respRefusals.arity('config|get');
  const globs = words.slice(2).map((respWord) => globOf(respWord.toString().toLowerCase()));
  const matchedSettings = Object.entries(settings).filter(([name]) => globs.some((glob) => glob(name)));
  replies.map(matchedSettings.length);
  for (const [name, value] of matchedSettings) {
    replies.bulk(name);
    replies.bulk(value);
  }
}

export function command(replies: RespReplies, words: readonly Buffer[], rows: Readonly<Record<string, KvCommandRow>>): void {
  const sub = words.length === 1 ? '' : upper(words[1]!);
  switch (sub) {
    case '':
      return list(replies, Object.keys(rows), rows);
    case 'COUNT':
      return replies.integer(Object.keys(rows).length);
    case 'DOCS':
      return replies.map(0);
    case 'LIST':
      replies.array(Object.keys(rows).length);
      for (const name of Object.keys(rows)) replies.bulk(name);
      return;
    case 'INFO':
      return list(
        replies,
        words.slice(2).map((respWord) => respWord.toString('latin1').toLowerCase()),
        rows,
      );
  }
  throw respRefusals.subcommand('COMMAND', words[1]!.toString('latin1'));
}

function list(replies: RespReplies, names: readonly string[], rows: Readonly<Record<string, KvCommandRow>>): void {
  replies.array(names.length);
  for (const name of names) {
    const row = Object.hasOwn(rows, name) ? rows[name] : undefined;
    if (row === undefined) {
      replies.nothing();
      continue;
    }
    replies.array(6);
    replies.bulk(name);
    replies.integer(row.arity);
    replies.array(1);
    replies.simple(row.reads ? 'readonly' : 'write');
    for (const keyPosition of row.keys) replies.integer(keyPosition);
  }
}
