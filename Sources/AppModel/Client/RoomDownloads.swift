import Confab
import Foundation

/// Files downloaded from a room's chat. They stay on this device until the user leaves the room.
@MainActor final class RoomDownloads {
    private let tell: @MainActor (_ file: RoomFileID, ChatFile.State) -> Void
    private var running: [Task<Void, Never>] = []
    /// The folder for the downloads. It is separate, because the temporary directory may contain other files with the
    /// same names as the downloads.
    private let folder = FileManager.default.temporaryDirectory.appending(path: "confab-room-\(UUID().uuidString)")

    init(_ tell: @escaping @MainActor (_ file: RoomFileID, ChatFile.State) -> Void) { self.tell = tell }

    func download(_ file: SharedFile, from room: Room?) {
        let id = file.id
        guard let room, room.files.contains(where: { $0.id == id }) else {
            return tell(id, .failed("This file is no longer available."))
        }
        running.append(
            Task { [weak self] in
                do throws(ConfabError) {
                    guard let saved = try await self?.save(file, from: room) else { return }
                    self?.tell(id, .saved(saved))
                } catch {
                    self?.tell(id, .failed(error.message))
                }
            })
    }

    /// Downloads a file into a new folder, and reports the progress.
    ///
    /// - Returns: the URL of the saved file; nil if the user has left.
    private func save(_ file: SharedFile, from room: Room) async throws(ConfabError) -> URL? {
        guard !Task.isCancelled else { return nil }
        // Each file gets a separate folder, because files may have the same name. The SDK has made the name safe for
        // a path.
        let place = folder.appending(path: UUID().uuidString)
        // Ignore an error here: if the folder does not exist, the download fails and reports that.
        try? FileManager.default.createDirectory(at: place, withIntermediateDirectories: true)
        let (percents, percent) = AsyncStream.makeStream(of: Int.self, bufferingPolicy: .bufferingNewest(1))
        let reading = Task { [weak self] in
            for await percent in percents { self?.tell(file.id, .downloading(percent: percent)) }
        }
        defer {
            percent.finish()
            reading.cancel()
        }
        let destination = place.appending(path: file.name)
        do throws(ConfabError) {
            try await room.download(file, to: destination) { percent.yield(Int($0.fraction * 100)) }
        } catch {
            try? FileManager.default.removeItem(at: place)
            throw error
        }
        guard !Task.isCancelled else {
            try? FileManager.default.removeItem(at: place)
            return nil
        }
        return destination
    }

    func forget() {
        for task in running { task.cancel() }
        running = []
        try? FileManager.default.removeItem(at: folder)
    }
}
