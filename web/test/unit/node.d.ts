// Declares the parts of Node that the unit tests use. Node's own type declarations are a package, and this project installs no
// packages.
declare module 'node:test' {
  type Run = (context: any) => unknown;
  export const test: ((name: string, run: Run) => void) & { skip: (name: string, run: Run) => void };
  export const describe: (name: string, run: Run) => void;
  export const beforeEach: (run: Run) => void;
  export const afterEach: (run: Run) => void;
}
declare module 'node:assert/strict' {
  const assert: any;
  export default assert;
}
declare module 'node:fs' {
  export const readdirSync: (path: string | URL) => string[];
  export const readFileSync: (path: string | URL, encoding: 'utf8') => string;
  export const writeFileSync: (path: string | URL, text: string) => void;
}
declare function setImmediate(run: () => void): unknown;
declare const process: { env: Record<string, string | undefined> };
