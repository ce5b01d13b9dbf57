/** Folder of package.json, as a URL: both `src` and the bundle in `dist` lie in it. This file must stay at the root of `src`. */
export const packageRoot = new URL('../', import.meta.url);
