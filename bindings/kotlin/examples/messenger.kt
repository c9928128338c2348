// Two people exchange messages over TCP, in a wraith session (bindings/MESSENGER.md).
//
//     messenger listen PORT
//     messenger connect HOST PORT

package org.wraith.examples

import org.wraith.Handshake
import org.wraith.HandshakeOptions
import org.wraith.Identity
import org.wraith.Session
import java.io.DataInputStream
import java.io.DataOutputStream
import java.io.EOFException
import java.io.FileDescriptor
import java.io.FileOutputStream
import java.io.IOException
import java.io.PrintStream
import java.net.InetAddress
import java.net.ServerSocket
import java.net.Socket
import kotlin.concurrent.thread
import kotlin.system.exitProcess

private const val PROTOCOL = "Noise_XXhfs_25519+MLKEM768_ChaChaPoly_BLAKE2s"
private const val PROLOGUE = "wraith messenger 1"
private const val FRAME_BYTES_MAX = 65_535
private const val LINE_BYTES_MAX = 65_000

fun main(words: Array<String>) {
    when {
        words.size == 2 && words[0] == "listen" -> talk(accept(words[1].toInt()), begins = false)
        words.size == 3 && words[0] == "connect" -> talk(Socket(words[1], words[2].toInt()), begins = true)
        else -> {
            System.err.println("messenger listen PORT | connect HOST PORT")
            exitProcess(2)
        }
    }
}

/** Frames on a TCP connection: a big-endian length of four bytes, and that many bytes. */
private class Frames(private val socket: Socket) {
    private val input = DataInputStream(socket.getInputStream().buffered())
    private val output = DataOutputStream(socket.getOutputStream().buffered())

    fun send(body: ByteArray) {
        output.writeInt(body.size)
        output.write(body)
        output.flush()
    }

    /** Reads the next frame; null if the stream ends between two frames. */
    fun receive(): ByteArray? {
        val first = input.read()
        if (first < 0) return null
        val length = (first shl 24) or (input.readUnsignedByte() shl 16) or input.readUnsignedShort()
        if (length !in 1..FRAME_BYTES_MAX) throw IOException("a frame of $length bytes")
        return ByteArray(length).also(input::readFully)
    }

    fun end() = socket.shutdownOutput()
}

private fun talk(socket: Socket, begins: Boolean) {
    val frames = Frames(socket)
    val identity = Identity.generate()
    val options = HandshakeOptions(identity = identity, prologue = PROLOGUE.toByteArray())
    say("me ${identity.nodeId()}")
    val handshake = if (begins) Handshake.initiator(PROTOCOL, options) else Handshake.responder(PROTOCOL, options)
    val session = shakeHands(frames, handshake)
    // A side without further input still reads, until the other side has finished too or an error occurs.
    thread { orExit { speak(frames, session) } }
    orExit { listen(frames, session) }
    exitProcess(0)
}

private fun shakeHands(frames: Frames, handshake: Handshake): Session {
    while (!handshake.isFinished()) {
        if (handshake.isMyTurn()) {
            frames.send(handshake.write(ByteArray(0)))
        } else {
            handshake.read(frames.receive() ?: throw EOFException("the other side has gone"))
        }
    }
    say("peer ${handshake.peer()}")
    return handshake.intoSession()
}

private fun speak(frames: Frames, session: Session) {
    // UTF-8, regardless of the system's default.
    System.`in`.bufferedReader().forEachLine { line ->
        val text = line.toByteArray()
        if (text.size > LINE_BYTES_MAX) throw IOException("a line is too long")
        frames.send(session.seal(ByteArray(0), text))
    }
    frames.end()
}

private fun listen(frames: Frames, session: Session) {
    generateSequence(frames::receive).forEach { message ->
        val text = session.open(ByteArray(0), message).decodeToString()
        say("> " + text.filterNot(Char::isISOControl))
    }
}

private fun accept(port: Int): Socket = ServerSocket(port, 1, InetAddress.getLoopbackAddress()).use { server ->
    say("listening on ${server.localPort}")
    server.accept()
}

private fun orExit(work: () -> Unit) = try {
    work()
} catch (error: Exception) {
    System.err.println(error)
    exitProcess(1)
}

private val screen = PrintStream(FileOutputStream(FileDescriptor.out), true, Charsets.UTF_8)

private fun say(line: String) = screen.println(line)
