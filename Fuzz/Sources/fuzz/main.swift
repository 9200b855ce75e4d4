// The libFuzzer entry point.
//
//   FUZZ_TARGET=NAME fuzz OPTIONS FOLDER…   fuzzes one; options and folders are libFuzzer's
//   FUZZ_TARGET=NAME fuzz FILE…             runs these inputs and nothing else
//   fuzz --list                             name, longest input, dictionary (or -) and folders of seeds, one target a line
//
// The name is an environment variable because libFuzzer restarts this program, with other arguments, to minimize an
// input.

import FuzzTargets

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#elseif canImport(Darwin)
import Darwin
#endif

private let target = getenv("FUZZ_TARGET").flatMap { name in
    FuzzTarget.all.first { $0.name == String(cString: name) }
}

@_cdecl("LLVMFuzzerTestOneInput")
func checkOneInput(_ bytes: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
    do {
        try target?.check(Array(UnsafeBufferPointer(start: bytes, count: count)))
    } catch {
        // libFuzzer saves the input of a process that crashes.
        print("broken property: \(error)")
        fflush(nil)
        abort()
    }
    return 0
}

@_silgen_name("LLVMFuzzerRunDriver")
func runFuzzer(
    _ count: UnsafeMutablePointer<CInt>,
    _ arguments: UnsafeMutablePointer<UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>>,
    _ check: @convention(c) (UnsafePointer<UInt8>?, Int) -> CInt
) -> CInt

if CommandLine.arguments.dropFirst() == ["--list"] {
    for target in FuzzTarget.all {
        let columns = [target.name, String(target.longestInput), target.dictionary ?? "-"] + target.seeds
        print(columns.joined(separator: " "))
    }
    exit(0)
}
guard target != nil else {
    print("FUZZ_TARGET is none of \(FuzzTarget.all.map(\.name).joined(separator: ", ")).")
    exit(2)
}
var count = CommandLine.argc
var arguments = CommandLine.unsafeArgv
exit(runFuzzer(&count, &arguments, checkOneInput))
