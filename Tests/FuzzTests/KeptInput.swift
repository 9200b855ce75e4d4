import Foundation

/// An input file from `Fuzz/Corpora/<target>`, `Fuzz/Findings/<target>` or the target's seed folders.
struct KeptInput {
    /// The file's path, relative to the root of the checkout.
    let path: String
    let bytes: [UInt8]

    /// The root of the checkout.
    static let root = URL(fileURLWithPath: #filePath)
        .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()

    static func all(of target: FuzzTarget) -> [KeptInput] {
        let folders = ["Fuzz/Findings/\(target.name)", "Fuzz/Corpora/\(target.name)"] + target.seeds
        return folders.flatMap { folder in
            names(in: folder).sorted().compactMap { name in
                let path = "\(folder)/\(name)"
                guard let data = try? Data(contentsOf: root.appending(path: path)) else { return nil }
                return KeptInput(path: path, bytes: Array(data))
            }
        }
    }

    /// Returns the names of the files and folders in a folder, or an empty list if the folder does not exist.
    static func names(in folder: String) -> Set<String> {
        let names = try? FileManager.default.contentsOfDirectory(atPath: root.appending(path: folder).path)
        return Set((names ?? []).filter { !$0.hasPrefix(".") })
    }
}
