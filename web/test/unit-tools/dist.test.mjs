// Tests what `scripts/dist` packs, with a small program in place of the server.
import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { after, before, describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('../../..', import.meta.url));
const dist = path.join(root, 'scripts/dist');
const run = (command, ...args) => execFileSync(command, args, { encoding: 'utf8', stdio: 'pipe' });
const isMissing = (command) => spawnSync('sh', ['-c', 'command -v "$1"', 'sh', command]).status !== 0;
const missing = ['gcc', 'git', 'dh', 'dpkg-shlibdeps', 'objcopy'].find(isMissing);

describe('what scripts/dist packs', { skip: missing && `${missing} is not installed` }, () => {
  const work = mkdtempSync(path.join(tmpdir(), 'confab-packing-'));
  const out = path.join(work, 'out');
  const file = (name) => path.join(out, readdirSync(out).find((one) => name.test(one)) ?? assert.fail(`${name} is missing`));
  const control = (part) => run('dpkg-deb', '--info', file(/\.deb$/), part);

  before(() => {
    const program = path.join(work, 'program');
    const packages = path.join(work, 'build/checkouts/swift-example');
    mkdirSync(packages, { recursive: true });
    writeFileSync(path.join(packages, 'LICENSE.txt'), 'The license of a package.\n');
    writeFileSync(`${program}.c`, '#include <stdio.h>\nint main(void) { puts("1.2.3"); return 0; }\n');
    run('gcc', '-g', '-o', program, `${program}.c`);
    execFileSync(dist, ['--executable', program], {
      env: { ...process.env, CONFAB_BUILD: path.join(work, 'build'), CONFAB_DIST: out }, stdio: 'pipe',
    });
  });
  after(() => rmSync(work, { recursive: true, force: true }));

  test('every file has a checksum, which is right', () => {
    const names = readFileSync(path.join(out, 'SHA256SUMS'), 'utf8').trim().split('\n').map((line) => line.split(/\s+/)[1]);
    assert.deepEqual(names.sort(), readdirSync(out).filter((name) => name !== 'SHA256SUMS').sort());
    assert.equal(names.length, 3);
    execFileSync('sha256sum', ['--check', '--strict', 'SHA256SUMS'], { cwd: out, stdio: 'pipe' });
  });

  test('the package has only the executable, the unit, the configuration and documents', () => {
    const places = ['usr/bin/confab', '(usr/)?lib/systemd/system/confab[.]service', 'etc/confab/confab[.]yaml', 'usr/share/doc/confab/.+'];
    const allowed = new RegExp(`^[.]/(${places.join('|')})$`);
    const lines = run('dpkg-deb', '--contents', file(/\.deb$/)).trim().split('\n').map((line) => line.split(/\s+/));
    assert.deepEqual(lines.filter(([, owner]) => owner !== 'root/root'), []);
    const files = lines.filter(([mode]) => !mode.startsWith('d')).map(([, , , , , name]) => name);
    assert.deepEqual(files.filter((name) => !allowed.test(name)), []);
    for (const name of ['docs/operations.md', 'CHANGELOG.md', 'THIRD-PARTY-LICENSES', 'copyright', 'examples/nginx.conf.sample']) {
      assert.ok(files.includes(`./usr/share/doc/confab/${name}`), name);
    }
  });

  test('the package depends on what the executable needs, and keeps the configuration', () => {
    assert.match(control('control'), /^Version: 1\.2\.3(~\d{14}\.[0-9a-f]{10})?$/m);
    assert.match(control('control'), /^Depends: .*\blibc6 \(>=.*\bdebconf\b.*\badduser\b/m);
    assert.equal(control('conffiles').trim(), '/etc/confab/confab.yaml');
    assert.match(control('templates'), /^Template: confab\/delete-data\nType: boolean\nDefault: false$/m);
    for (const script of ['postinst', 'prerm', 'postrm']) {
      execFileSync('sh', ['-n'], { input: control(script), stdio: 'pipe' });
    }
  });

  test('the unit of the package starts the executable of the package', () => {
    run('dpkg-deb', '--extract', file(/\.deb$/), path.join(work, 'installed'));
    const unit = run('find', path.join(work, 'installed'), '-name', 'confab.service', '-exec', 'cat', '{}', '+');
    assert.match(unit, /^ExecStart=\/usr\/bin\/confab serve --config \/etc\/confab\/confab\.yaml /m);
    assert.doesNotMatch(unit, /\/usr\/local\//);
  });

  test('the archive has one folder, and its executable is stripped', () => {
    const archive = file(/\.tar\.gz$/);
    const folder = path.basename(archive, '.tar.gz');
    const names = run('tar', 'tf', archive).trim().split('\n');
    assert.deepEqual(names.filter((name) => !name.startsWith(`${folder}/`)), []);
    for (const name of ['confab', 'confab.service', 'confab.yaml', 'LICENSE', 'samples/nginx.conf.sample']) {
      assert.ok(names.includes(`${folder}/${name}`), name);
    }
    run('tar', 'xf', archive, '--directory', work);
    const licenses = readFileSync(path.join(work, folder, 'THIRD-PARTY-LICENSES'), 'utf8');
    assert.match(licenses, /swift-example\/LICENSE\.txt[^]*The license of a package\./);
    assert.equal(run('nm', path.join(work, folder, 'confab')).trim(), '');
  });

  test('an executable that needs Swift libraries is refused', () => {
    const library = path.join(work, 'libswiftCore.so');
    const program = path.join(work, 'dynamic');
    writeFileSync(`${program}.c`, 'int one(void); int main(void) { return one(); }\n');
    writeFileSync(`${library}.c`, 'int one(void) { return 1; }\n');
    run('gcc', '-shared', '-Wl,-soname,libswiftCore.so', '-o', library, `${library}.c`);
    run('gcc', '-o', program, `${program}.c`, library);
    chmodSync(program, 0o755);
    assert.throws(() => run(dist, '--executable', program), /libswiftCore\.so[^]*--static-swift-stdlib/);
  });
});
