#if canImport(Darwin)
import Foundation

/// An HTTP request with `URLSession`. It is `@unchecked Sendable` because it is used only on its serial queue.
final class URLSessionTransfer: NSObject, @unchecked Sendable {
    private let transfer: HTTPTransfer
    private var receiver: HTTPReceiver
    private var failure: (any Error)?
    private let done: @Sendable (Result<HTTPResponse, any Error>) -> Void

    private init(
        _ transfer: HTTPTransfer, _ done: @escaping @Sendable (Result<HTTPResponse, any Error>) -> Void
    ) {
        (self.transfer, receiver, self.done) = (transfer, HTTPReceiver(transfer), done)
    }

    /// Sends a request.
    ///
    /// - Returns: a closure that cancels the request.
    static func run(
        _ transfer: HTTPTransfer, _ done: @escaping @Sendable (Result<HTTPResponse, any Error>) -> Void
    ) -> @Sendable () -> Void {
        let configuration = URLSessionConfiguration.ephemeral
        configuration.timeoutIntervalForRequest = TimeInterval(HTTPResponse.timeout.components.seconds)
        if !transfer.isFile { configuration.timeoutIntervalForResource = configuration.timeoutIntervalForRequest }
        let queue = OperationQueue()
        queue.maxConcurrentOperationCount = 1
        let session = URLSession(
            configuration: configuration, delegate: URLSessionTransfer(transfer, done), delegateQueue: queue)
        var request = URLRequest(url: transfer.url, cachePolicy: .reloadIgnoringLocalCacheData)
        request.setValue("Bearer \(transfer.bearer)", forHTTPHeaderField: "Authorization")
        if let size = transfer.upload?.size {
            request.httpMethod = "PUT"
            request.setValue("application/octet-stream", forHTTPHeaderField: "Content-Type")
            request.setValue("\(size)", forHTTPHeaderField: "Content-Length")
        }
        let task =
            transfer.upload == nil
            ? session.dataTask(with: request) : session.uploadTask(withStreamedRequest: request)
        task.resume()
        session.finishTasksAndInvalidate()
        return { task.cancel() }
    }
}

extension URLSessionTransfer: URLSessionDataDelegate {
    func urlSession(
        _ session: URLSession, task: URLSessionTask,
        needNewBodyStream completionHandler: @escaping (InputStream?) -> Void
    ) {
        // Read through the descriptor of the open file, because another file may have replaced it at its path.
        let descriptor = transfer.upload.map { "/dev/fd/\($0.handle.fileDescriptor)" }
        completionHandler(descriptor.flatMap { InputStream(fileAtPath: $0) })
    }

    func urlSession(
        _ session: URLSession, task: URLSessionTask, didSendBodyData bytesSent: Int64, totalBytesSent: Int64,
        totalBytesExpectedToSend: Int64
    ) {
        if let size = transfer.upload?.size { transfer.progress(min(Int(totalBytesSent), size)) }
    }

    func urlSession(
        _ session: URLSession, task: URLSessionTask, willPerformHTTPRedirection response: HTTPURLResponse,
        newRequest request: URLRequest, completionHandler: @escaping (URLRequest?) -> Void
    ) {
        // Do not follow redirects: the secret is meant for this server only.
        completionHandler(nil)
    }

    func urlSession(
        _ session: URLSession, dataTask: URLSessionDataTask, didReceive response: URLResponse,
        completionHandler: @escaping (URLSession.ResponseDisposition) -> Void
    ) {
        receiver.begin(status: (response as? HTTPURLResponse)?.statusCode ?? 0)
        completionHandler(.allow)
    }

    func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) {
        guard failure == nil else { return }
        do { try receiver.take(data) } catch {
            failure = error
            dataTask.cancel()
        }
    }

    func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
        if let error = failure ?? error { return done(.failure(error)) }
        done(Result { try receiver.end() })
    }
}
#endif
