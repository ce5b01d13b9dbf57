/** How a command ends: codes that scripts can rely on, and one line on stderr that says why. */
import { ConfigError, ServiceError } from '../errors.ts';

export const exitCode = {
  ok: 0,
  /** The work was done and what it found is bad: verification failed, rows rejected, digests differ. */
  findings: 1,
  /** The command could not run: bad flags or settings. */
  usage: 2,
  /** The store refused or failed. */
  failed: 3,
  /** Shutdown with acknowledged work still queued. */
  undrained: 4,
} as const;

/** A running server refused or failed: its own words. */
export class RemoteError extends Error {
  override readonly name = 'RemoteError';
}

/** A refusal of the operating system (a missing file, a full disk) is no bug: its message says what failed and where. */
function isSystemError(thrownError: unknown): thrownError is Error {
  return thrownError instanceof Error && typeof (thrownError as NodeJS.ErrnoException).syscall === 'string';
}

/** Runs a command to an exit code; anything thrown becomes one line. A bug keeps its stack. */
export async function finish(cliCommand: () => Promise<number>): Promise<void> {
  try {
    process.exitCode = await cliCommand();
  } catch (commandError) {
    if (commandError instanceof ConfigError) {
      process.stderr.write(`annals: ${commandError.message}\n`);
      process.exitCode = exitCode.usage;
    } else if (commandError instanceof ServiceError) {
      process.stderr.write(`annals: ${commandError.message} (${commandError.code})\n`);
      process.exitCode = exitCode.failed;
    } else if (commandError instanceof RemoteError || isSystemError(commandError)) {
      process.stderr.write(`annals: ${commandError.message}\n`);
      process.exitCode = exitCode.failed;
    } else {
      process.stderr.write(
        `annals: ${commandError instanceof Error ? (commandError.stack ?? commandError.message) : String(commandError)}\n`,
      );
      process.exitCode = exitCode.failed;
    }
  }
}
