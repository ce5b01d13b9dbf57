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
export function client(
  respReplies: RespReplies,
  clientWords: readonly Buffer[],
  { id: clientId, name: clientName, ip: clientIp }: ClientInfo,
): string | null {
  const clientSubcommand = upper(clientWords[1]!);
  switch (clientSubcommand) {
    case 'ID':
      respReplies.integer(clientId);
      return null;
    case 'GETNAME':
      if (clientName === '') respReplies.nothing();
      else respReplies.bulk(clientName);
      return null;
    case 'SETNAME': {
      const [, , clientNameWord] = clientWords;
      if (clientWords.length !== 3 || /[^!-~]/.test(clientNameWord!.toString('latin1'))) throw respRefusals.syntax();
      respReplies.simple('OK');
      return clientNameWord!.toString();
    }
    case 'SETINFO':
      if (clientWords.length !== 4) throw respRefusals.syntax();
      respReplies.simple('OK');
      return null;
    case 'INFO':
      respReplies.bulk(`id=${clientId} addr=${clientIp ?? ''} name=${clientName} db=0 resp=${respReplies.protocol}\n`);
      return null;
  }
  throw respRefusals.subcommand('CLIENT', clientWords[1]!.toString('latin1'));
}

export function info(infoReplies: RespReplies): void {
  const infoLines = [
    '# Server',
    'redis_version:7.2.0',
    'redis_mode:standalone',
    'server_name:annals',
    '# Persistence',
    'loading:0',
  ];
  infoReplies.bulk(`${[...infoLines, '# Replication', 'role:master'].join('\r\n')}\r\n`);
}

/** Settings that clients read; none can be changed. */
const redisSettings: Readonly<Record<string, string>> = { appendonly: 'yes', databases: '1', maxmemory: '0', save: '' };

export function config(configReplies: RespReplies, configWords: readonly Buffer[]): void {
  if (upper(configWords[1]!) !== 'GET') throw respRefusals.subcommand('CONFIG', configWords[1]!.toString('latin1'));
  if (configWords.length < 3) throw respRefusals.arity('config|get');
  const settingGlobs = configWords.slice(2).map((respWord) => globOf(respWord.toString().toLowerCase()));
  const matchedSettings = Object.entries(redisSettings).filter(([settingName]) =>
    settingGlobs.some((settingGlob) => settingGlob(settingName)),
  );
  configReplies.map(matchedSettings.length);
  for (const [name, settingValue] of matchedSettings) {
    configReplies.bulk(name);
    configReplies.bulk(settingValue);
  }
}

export function command(
  commandReplies: RespReplies,
  commandWords: readonly Buffer[],
  commandRows: Readonly<Record<string, KvCommandRow>>,
): void {
  const commandSubcommand = commandWords.length === 1 ? '' : upper(commandWords[1]!);
  switch (commandSubcommand) {
    case '':
      return commandList(commandReplies, Object.keys(commandRows), commandRows);
    case 'COUNT':
      return commandReplies.integer(Object.keys(commandRows).length);
    case 'DOCS':
      return commandReplies.map(0);
    case 'LIST':
      commandReplies.array(Object.keys(commandRows).length);
      for (const commandName of Object.keys(commandRows)) commandReplies.bulk(commandName);
      return;
    case 'INFO':
      return commandList(
        commandReplies,
        commandWords.slice(2).map((respWord) => respWord.toString('latin1').toLowerCase()),
        commandRows,
      );
  }
  throw respRefusals.subcommand('COMMAND', commandWords[1]!.toString('latin1'));
}

function commandList(
  commandReplies: RespReplies,
  commandNames: readonly string[],
  commandRows: Readonly<Record<string, KvCommandRow>>,
): void {
  commandReplies.array(commandNames.length);
  for (const commandName of commandNames) {
    const commandRow = Object.hasOwn(commandRows, commandName) ? commandRows[commandName] : undefined;
    if (commandRow === undefined) {
      commandReplies.nothing();
      continue;
    }
    commandReplies.array(6);
    commandReplies.bulk(commandName);
    commandReplies.integer(commandRow.arity);
    commandReplies.array(1);
    commandReplies.simple(commandRow.reads ? 'readonly' : 'write');
    for (const keyPosition of commandRow.keys) commandReplies.integer(keyPosition);
  }
}
