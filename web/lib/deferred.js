// Makes a promise together with the functions that settle it.

/** @returns {{promise: Promise<any>, resolve: (value?: any) => void, reject: (error: unknown) => void}} */
export function deferred() {
  /** @type {any} */
  const made = {};
  made.promise = new Promise((resolve, reject) => Object.assign(made, { resolve, reject }));
  return made;
}
