import CSpawn

#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#endif

/// The pipes of a child's standard streams. Its owner calls `close` at the end; if `init` throws, nothing is open.
struct ChildStreams {
    typealias Pipe = (read: Int32, write: Int32)
    /// Returns nil if this process has too many open descriptors.
    typealias MakePipe = () -> Pipe?

    let output: Pipe
    let errors: Pipe
    /// The child's end of its standard input; nil if that is empty.
    let input: Int32?
    private var open: [Int32] = []

    /// - Parameters:
    ///   - input: has the other end of the child's standard input, and closes it.
    ///   - makePipe: an argument for tests.
    /// - Throws: `ComposeError.cannotWrite`.
    init(_ input: ChildInput?, _ makePipe: MakePipe = Self.makePipe) throws {
        var open: [Int32] = []
        func pipe() throws -> Pipe {
            guard let pipe = makePipe() else { throw ComposeError.cannotWrite("A pipe") }
            open += [pipe.read, pipe.write]
            return pipe
        }
        do {
            (output, errors) = (try pipe(), try pipe())
            self.input = try input?.open(makePipe)
        } catch {
            Self.close(open)
            throw error
        }
        self.open = open + (self.input.map { [$0] } ?? [])
    }

    /// Closes the child's ends in this process, after the child was started. Otherwise reading would never end.
    mutating func closeChildEnds() {
        let ours = [output.read, errors.read]
        Self.close(open.filter { !ours.contains($0) })
        open = ours
    }

    /// Closes what is still open.
    mutating func close() {
        Self.close(open)
        open = []
    }

    static func makePipe() -> Pipe? {
        var ends: [Int32] = [0, 0]
        return confab_spawn_pipe(&ends) == 0 ? (ends[0], ends[1]) : nil
    }

    private static func close(_ descriptors: [Int32]) {
        for descriptor in descriptors { closeDescriptor(descriptor) }
    }
}

/// The function of the system, which has the name of a method.
private func closeDescriptor(_ descriptor: Int32) { _ = close(descriptor) }
