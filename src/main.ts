/**
 * Process entry: verbs and flags to commands. Each command is a file of `cli/` that returns an exit code, loaded when it is asked
 * for: loading all of them takes longer than most of them.
 */
import { readFileSync } from 'node:fs';
import { Command } from 'commander';
import { finish } from './cli/exit-codes.ts';
import { packageRoot } from './package-root.ts';
import type { VerifyProofOptions } from './cli/proof.ts';

/** One version for package, server and clients. */
export const version = (JSON.parse(readFileSync(new URL('package.json', packageRoot), 'utf8')) as { version: string }).version;

export async function main(args: readonly string[]): Promise<void> {
  const program = new Command('annals')
    .description('A governed, bi-temporal knowledge store: one hash-chained log, every answer provable.')
    .version(version)
    .option('--config <path>', 'config file, over SERVICE_CONFIG, ./service.toml and ~/.config/annals/service.toml')
    .showHelpAfterError('(--help shows what is accepted)')
    .exitOverride((commandError) => {
      process.exit(commandError.exitCode === 0 ? 0 : 2);
    });

  const flags = new VerbFlags(program);
  // A table of every setting, which no other verb shows.
  addServing(program, flags, args.includes('serve') ? (await import('./cli/settings-help.ts')).settingsHelp : '');
  addRows(program, flags);
  addChecks(program, flags);
  addKeys(program, flags);
  addBackups(program, flags);
  addProofs(program, flags);
  addTokens(program, flags);
  await program.parseAsync([...args], { from: 'user' });
}

/** Flags that several verbs share. */
class VerbFlags {
  readonly #program: Command;

  constructor(program: Command) {
    this.#program = program;
  }

  /** Flags of the program and of the verb, as commander parsed them. */
  merge<T extends object>(options: object): T {
    return { ...this.#program.opts<object>(), ...options } as T;
  }

  withDataDir(command: Command): Command {
    return command.option('--data-dir <path>', 'data directory (SERVICE_DATA_DIR)');
  }

  withServer(command: Command): Command {
    return this.withDataDir(command)
      .option('--url <url>', 'a running server instead of a data directory, such as http://127.0.0.1:9090 (ANNALS_URL)')
      .option('--token <token>', 'bearer token for --url (ANNALS_TOKEN)')
      .option('--organization <path>', 'organisation path: what is written belongs to it, what is read lies in or below it')
      .option('--purpose <purpose>', 'purpose, recorded with the access');
  }

  withBranch(command: Command): Command {
    return this.withServer(command).option('--branch <name>', 'the branch to read or write');
  }
}

function addServing(program: Command, flags: VerbFlags, settingsHelp: string): void {
  flags
    .withDataDir(program.command('serve'))
    .description('open the store and serve its doors until SIGINT or SIGTERM')
    .addHelpText('after', settingsHelp)
    .action((options: object) =>
      finish(async () => (await import('./cli/serve.ts')).serveCommand(flags.merge(options), version)),
    );

  flags
    .withDataDir(program.command('demo'))
    .description('serve a store to look around in: an empty one is filled, and the link to its console is printed')
    .action((options: object) => finish(async () => (await import('./cli/demo.ts')).demoCommand(flags.merge(options), version)));

  program
    .command('console')
    .description('a link that opens the console of a running server once, within a minute')
    .option('--url <url>', 'its admin listener; the admin credential is SERVICE_ADMIN_TOKEN', 'http://127.0.0.1:9091')
    .action((options: object) => finish(async () => (await import('./cli/console.ts')).consoleCommand(flags.merge(options))));
}

function addRows(program: Command, flags: VerbFlags): void {
  flags
    .withBranch(program.command('ingest'))
    .description('load NDJSON, JSON or CSV files; - is standard input')
    .argument('<files...>')
    .requiredOption('--type <name>', 'type of the rows')
    .option('--auto', 'register the type on first write, its columns inferred')
    .option('--key <property>', 'with --auto: the property that is the primary key')
    .option('--columns <names>', 'CSV without a header row: its column names, comma-separated')
    .option('--null <text>', 'CSV: unquoted text that means NULL, such as \\N')
    .option('--atomic', 'all rows or none')
    .action((files: string[], options: object) =>
      finish(async () => (await import('./cli/ingest.ts')).ingestCommand(files, flags.merge(options), version)),
    );

  flags
    .withBranch(program.command('query'))
    .description('run one statement and print its rows')
    .argument('<sql>')
    .option('--format <format>', 'table, csv, json, ndjson, arrow or parquet', 'table')
    .option('--output <file>', 'write the rows to this file')
    .action((sql: string, options: object) =>
      finish(async () => (await import('./cli/query.ts')).queryCommand(sql, flags.merge(options), version)),
    );

  flags
    .withServer(program.command('branch'))
    .description('fork a branch, list branches or delete one')
    .argument('[name]', '1 to 128 characters')
    .option('--from <source>', 'fork it from this branch')
    .option('--ontology', 'with --from: types only, no rows')
    .option('--list', 'list branches')
    .option('--delete', 'delete it, and free what only it holds')
    .action((name: string | undefined, options: object) =>
      finish(async () => (await import('./cli/branch.ts')).branchCommand(name, flags.merge(options), version)),
    );

  flags
    .withServer(program.command('jobs'))
    .description('long work of a running server: list it, follow one until it ends (exit 1 unless it is done), or cancel it')
    .argument('[id]', 'follow this one')
    .option('--cancel', 'cancel it instead')
    .option('--admin', '--url names the admin listener; the admin credential is SERVICE_ADMIN_TOKEN')
    .option('--json', 'print JSON')
    .action((id: string | undefined, options: object) =>
      finish(async () => (await import('./cli/jobs.ts')).jobsCommand(id, flags.merge(options))),
    );

  program
    .command('mcp')
    .description('tools of a running server for an agent client, over standard input and output (Model Context Protocol)')
    .option('--url <url>', 'the server, such as http://127.0.0.1:9090 (ANNALS_URL)')
    .option('--token <token>', 'bearer token (ANNALS_TOKEN)')
    .option('--organization <path>', 'organisation path: what is written belongs to it, what is read lies in or below it')
    .option('--purpose <purpose>', 'purpose of every call; without it each call states its own')
    .option('--branch <name>', 'the branch to read or write')
    .action((options: object) => finish(async () => (await import('./cli/mcp.ts')).mcpCommand(flags.merge(options))));
}

function addChecks(program: Command, flags: VerbFlags): void {
  flags
    .withDataDir(program.command('replay'))
    .description('rebuild projections from the log and print their digests')
    .option(
      '--projection <name>',
      'only this one (repeatable)',
      (name: string, names: string[]) => [...names, name],
      [] as string[],
    )
    .option('--check', 'compare with the derived files on disk; exit 1 if a digest differs')
    .action((options: object) =>
      finish(async () => (await import('./cli/replay.ts')).replayCommand(flags.merge(options), version)),
    );

  flags
    .withDataDir(program.command('verify'))
    .description('check chain, tree, signed heads, blobs and manifest of a data directory, trusting no server')
    .option('--projections', 'compare derived files with a rebuild as well')
    .option('--sealed', 'leave bodies shut: chain, tree, signed heads and payload digests only')
    .option('--json', 'print the report as JSON')
    .action((options: object) =>
      finish(async () => (await import('./cli/verify.ts')).verifyCommand(flags.merge(options), version)),
    );
}

function addKeys(program: Command, flags: VerbFlags): void {
  flags
    .withDataDir(program.command('escrow'))
    .description('write the keys of a data directory into one file, under a secret of its own, or look into one')
    .option('--out <file>', 'write it there, in place of an earlier one')
    .option('--check <file>', 'open this one instead, and say what is in it')
    .option('--escrow-key-file <file>', 'the secret: 32 bytes as hex or base64 (SERVICE_ESCROW_KEY, SERVICE_ESCROW_KEY_FILE)')
    .option('--json', 'print its label as JSON')
    .action((options: object) => finish(async () => (await import('./cli/escrow.ts')).escrowCommand(flags.merge(options))));

  program
    .command('object-key')
    .description('print the access key and the secret key of a registry token on the object door')
    .option('--token <token>', 'the token (ANNALS_TOKEN); without one, the key id of SERVICE_BEARER_TOKEN for signed URLs')
    .action((options: object) =>
      finish(async () => (await import('./cli/object-key.ts')).objectKeyCommand(flags.merge(options))),
    );

  flags
    .withDataDir(program.command('rekey'))
    .description('put the keys of a stopped store under another key-encryption key')
    .requiredOption('--new-kek-file <file>', 'the new one: 32 bytes as hex or base64')
    .action((options: object) => finish(async () => (await import('./cli/rekey.ts')).rekeyCommand(flags.merge(options))));
}

function addBackups(program: Command, flags: VerbFlags): void {
  const withKeys = (command: Command): Command =>
    flags
      .withDataDir(command)
      .option('--escrow <file>', 'keys from their escrow, where the data directory is gone')
      .option('--escrow-key-file <file>', 'its secret: 32 bytes as hex or base64 (SERVICE_ESCROW_KEY, SERVICE_ESCROW_KEY_FILE)')
      .option('--json', 'print JSON');

  flags
    .withDataDir(program.command('backup'))
    .description('back up a stopped store; a running one is by POST /admin/backup')
    .option('--to <dir>', 'where backups lie (SERVICE_BACKUP_DIR)')
    .option('--json', 'print JSON')
    .action((options: object) =>
      finish(async () => (await import('./cli/backup.ts')).backupCommand(flags.merge(options), version)),
    );

  withKeys(program.command('backups'))
    .description('list backups; exit 1 if one of them is damaged')
    .option('--from <dir>', 'where they lie (SERVICE_BACKUP_DIR)')
    .action((options: object) => finish(async () => (await import('./cli/backup.ts')).backupsCommand(flags.merge(options))));

  withKeys(program.command('restore'))
    .description('make a data directory of a backup and prove that nothing is missing; exit 1 if something differs')
    .argument('<backup>', 'its directory, its backup.json, or its name')
    .option('--target <dir>', 'the data directory to be: empty, or not there yet')
    .option('--drill', 'into a temporary directory, which is deleted again')
    .action((backup: string, options: object) =>
      finish(async () => (await import('./cli/backup.ts')).restoreCommand(backup, flags.merge(options), version)),
    );
}

function addProofs(program: Command, flags: VerbFlags): void {
  const proof = program
    .command('proof')
    .description('prove rows, entries and branches offline, to somebody who trusts nobody here');
  const out = (command: Command): Command =>
    flags.withServer(command).option('--out <file>', 'write there instead of standard output');
  out(proof.command('make', { isDefault: true }))
    .description('a proof file of an entry, a row or a branch (what `annals proof` does)')
    .option('--position <n>', 'the entry that covers this position')
    .option('--system-from <ns>', 'the entry that covers this instant: system_from of a row')
    .option('--leaf <n>', 'the entry of this number')
    .option('--branch <name>', 'the entry that forked this branch')
    .option('--row <pk>', 'a row of the entry')
    .option('--type <name>', 'with --row alone: the newest version of this row of the type')
    .option('--tree-size <n>', 'in the tree of so many entries; the newest signed one by default')
    .option('--from <n>', 'prove too that the tree of so many entries is its beginning')
    .option('--head <file>', 'the same for a checkpoint kept from earlier')
    .action((options: object) =>
      finish(async () => (await import('./cli/proof.ts')).makeProofCommand(flags.merge(options), version)),
    );
  out(proof.command('key'))
    .description('print the key that signs the heads of this log, as verifiers take it')
    .action((options: object) =>
      finish(async () => (await import('./cli/proof.ts')).proofKeyCommand(flags.merge(options), version)),
    );
  out(proof.command('head'))
    .description('print the newest signed head: keep it, and later proofs can be held against it')
    .action((options: object) =>
      finish(async () => (await import('./cli/proof.ts')).proofHeadCommand(flags.merge(options), version)),
    );
  proof
    .command('verify')
    .description('check a proof file with verify/annals-verify.mjs: exit 0 proven, 1 not proven')
    .argument('<file>')
    .requiredOption('--key <key>', 'key of the log, or a file that holds it')
    .option('--head <file>', 'a checkpoint kept from earlier: the proof must contain it')
    .action((file: string, options: VerifyProofOptions) =>
      finish(async () => (await import('./cli/proof.ts')).verifyProofCommand(file, options)),
    );
}

function addTokens(program: Command, flags: VerbFlags): void {
  const token = program.command('token').description('credentials of the data doors');
  flags
    .withDataDir(token.command('mint'))
    .description('make a token: through --url with the admin credential, else in the data directory of a stopped server')
    .option('--url <url>', 'admin listener of a running server, such as http://127.0.0.1:9091')
    .option('--tenant <id>', 'bind the token to a tenant')
    .option(
      '--organization <path>',
      'organisation path in force when a request names none: a default, no limit; --tenant confines',
    )
    .option('--principal <name>', 'who the token stands for')
    .option('--role <role>', 'a role (repeatable)', (role: string, roles: string[]) => [...roles, role], [] as string[])
    .option(
      '--token-purpose <purpose>',
      'a purpose it is restricted to (repeatable)',
      (purpose: string, all: string[]) => [...all, purpose],
      [] as string[],
    )
    .option('--expires-in <seconds>', 'life time; without it the token does not expire')
    .action((options: object) =>
      finish(async () => (await import('./cli/token.ts')).mintTokenCommand(flags.merge(options), version)),
    );
}
