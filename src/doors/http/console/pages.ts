/**
 * The page itself and its files, from memory. The page is one text for everybody: it holds no data, and may run nothing but the
 * scripts whose hashes stand in its policy.
 */
import { hash } from 'node:crypto';

/** The built application: `scripts/console.mjs` makes it, `cli/console-files.ts` reads it. */
export interface ConsoleFiles {
  /** Name of the script that starts the page. */
  readonly entry: string;
  readonly styles: string;
  /** By name; names hold a hash of the content. */
  readonly files: ReadonlyMap<string, Uint8Array>;
  /** Files to be imported by another name than their own, which changes with their content. */
  readonly aliases: Readonly<Record<string, string>>;
}

export interface ConsolePage {
  readonly html: string;
  readonly headers: Readonly<Record<string, string>>;
}

const subresourceHash = (fileContent: string | Uint8Array): string => `sha256-${hash('sha256', fileContent, 'base64')}`;

/** For every answer that the pages get, whatever it holds. */
export const guardHeaders: Readonly<Record<string, string>> = {
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'no-referrer',
  'cross-origin-resource-policy': 'same-origin',
  'cache-control': 'no-store',
};

/** `pageMount`: path of the page, below which its files and its calls lie. */
export function makePage(
  { entry: entryFile, styles: pageStyles, files: pageFiles, aliases }: ConsoleFiles,
  pageMount: string,
): ConsolePage {
  const filePath = (servedName: string): string => `${pageMount}/files/${servedName}`;
  const integrityByPath = Object.fromEntries(
    [...pageFiles].map(([fileName, fileBytes]) => [filePath(fileName), subresourceHash(fileBytes)]),
  );
  const moduleImports = Object.fromEntries(
    Object.entries(aliases).map(([importAlias, fileName]) => [importAlias, filePath(fileName)]),
  );
  const importMap = JSON.stringify({ imports: moduleImports, integrity: integrityByPath });
  const pageHtml = `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Annals</title>
<meta name="viewport" content="width=device-width,initial-scale=1">
<meta name="mount" content="${pageMount}">
<link rel="icon" href="data:image/svg+xml,${consoleIcon}">
<style>${pageStyles}</style>
<script type="importmap">${importMap}</script>
<script type="module" src="${filePath(entryFile)}" integrity="${subresourceHash(pageFiles.get(entryFile)!)}"></script>
</head><body><noscript>This page needs JavaScript.</noscript><div id="app"></div></body></html>
`;
  const scriptHashes = [subresourceHash(importMap), ...Object.values(integrityByPath)]
    .map((scriptHash) => `'${scriptHash}'`)
    .join(' ');
  const contentPolicy = [
    "default-src 'none'",
    `script-src ${scriptHashes}`,
    `style-src '${subresourceHash(pageStyles)}'`,
    "connect-src 'self'",
    'img-src data:',
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
    "require-trusted-types-for 'script'",
    "trusted-types 'none'",
  ];
  return {
    html: pageHtml,
    headers: {
      ...guardHeaders,
      'content-type': 'text/html; charset=utf-8',
      'content-security-policy': contentPolicy.join('; '),
      'cross-origin-opener-policy': 'same-origin',
      'x-frame-options': 'DENY',
      'permissions-policy': 'camera=(), microphone=(), geolocation=()',
    },
  };
}

const consoleIcon = encodeURIComponent(
  '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 16 16"><path d="M2 13 8 2l6 11M4.5 9h7" fill="none" stroke="#2f6f63" stroke-width="2"/></svg>',
);

/** A file of the application never changes under its name. */
export const fileHeaders: Readonly<Record<string, string>> = {
  ...guardHeaders,
  'content-type': 'text/javascript; charset=utf-8',
  'cache-control': 'private, max-age=31536000, immutable',
};
