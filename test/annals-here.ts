/** `annals` in the process of the test, as it is in one of its own: with that one's environment, folder and streams. */
import { vi } from 'vitest';
import { main } from '../src/main.ts';

export interface Said {
  readonly status: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

class Exit extends Error {
  readonly status: number;

  constructor(status: number) {
    super(`exit ${status}`);
    this.status = status;
  }
}

export async function runHere(
  args: readonly string[],
  { env, folder }: { readonly env: NodeJS.ProcessEnv; readonly folder: string },
): Promise<Said> {
  const said = { stdout: '', stderr: '' };
  const before = { env: process.env, folder: process.cwd() };
  const spies = [
    vi.spyOn(process, 'exit').mockImplementation((status) => {
      throw new Exit(Number(status));
    }),
    ...(['stdout', 'stderr'] as const).map((name) =>
      vi.spyOn(process[name], 'write').mockImplementation((chunk) => {
        said[name] += String(chunk);
        return true;
      }),
    ),
  ];
  process.env = { ...env };
  process.chdir(folder);
  process.exitCode = undefined;
  try {
    await main(args);
    return { status: Number(process.exitCode ?? 0), ...said };
  } catch (error) {
    if (error instanceof Exit) return { status: error.status, ...said };
    throw error;
  } finally {
    for (const spy of spies) spy.mockRestore();
    process.exitCode = undefined;
    process.env = before.env;
    process.chdir(before.folder);
  }
}
